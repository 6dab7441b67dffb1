"""Wiring of the product: settings, addresses, jobs, start-up; no rules of its own."""

from project.celery import app as celery_app

__all__ = ["celery_app"]
