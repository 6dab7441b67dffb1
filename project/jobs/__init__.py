"""Celery jobs: their queues and schedule, and our classes for beat and worker."""
