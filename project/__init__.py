"""Configuration of the product: settings, URLs, jobs and start-up. It contains no business rules."""

from project.celery import app as celery_app

__all__ = ["celery_app"]
