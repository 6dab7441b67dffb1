"""Stored responses of requests with an Idempotency-Key."""

from django.db import models

from personas.tenancy.models import WorkspaceOwned


class IdempotentResponse(WorkspaceOwned):
    """Response of the first request with an Idempotency-Key, returned again if the request is retried.

    It is written in the same transaction as the changes that the request made.
    """

    # After an erasure the row may be a stub: the status is 410, and digest, headers and body are empty.
    route = models.CharField(max_length=200)
    name = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=bytes)
    at = models.DateTimeField()

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "route", "name"], name="one_response_per_idempotency_key"
            ),
        ]
        indexes = [models.Index(fields=["at"], name="idempotent_responses_by_age")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_erased(self) -> bool:
        """Whether the response contained text that has been erased."""
        return not self.body_digest
