"""Configuration of the product: settings, URLs, jobs and start-up. It contains no business rules."""

from core.garbage_collection import postpone_garbage_collection

# Imports are most of a start; ProjectConfig sets other thresholds then.
postpone_garbage_collection()

from project.celery import app as celery_app  # noqa: E402  # see above

__all__ = ["celery_app"]
