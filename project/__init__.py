"""Configuration of the product: settings, URLs, jobs and start-up. It contains no business rules."""

from core.garbage_collection import postpone_garbage_collection

# Imports take most of the start-up time. ProjectConfig sets the usual thresholds after them.
postpone_garbage_collection()

from project.celery import app as celery_app  # noqa: E402  # see above

__all__ = ["celery_app"]
