"""Celery consumer that reconnects when a job cannot be acknowledged."""

from typing import Any

from celery.worker.consumer import Consumer


class ReconnectingConsumer(Consumer):
    """Consumer that treats a failed acknowledgement as a lost connection.

    Celery logs the error and goes on, but kombu still counts the message as unacknowledged. The prefetch
    limit is one message per process, so a worker would receive no more jobs after the broker was frozen
    at the end of a job.
    """

    def call_soon_ack(self, p: Any, logger: Any, errors: Any, *args: Any, **kwargs: Any) -> Any:
        """Schedule an acknowledgement, without the errors that its callback would log and drop."""
        # celery-types does not have this method yet.
        return super().call_soon_ack(p, logger, (), *args, **kwargs)  # type: ignore[misc]
