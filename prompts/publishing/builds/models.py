"""BuildCause: why an agent's prompts must be built again."""

from django.db import models

from personas.models import Agent, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey


class BuildCause(WorkspaceOwned):
    """Why an agent's prompts must be built again. The next build copies it into the version and deletes it.

    This is a transactional outbox: the cause is written in the transaction of the change, so no change is
    committed without it. Inserting a separate row needs no lock on the prompt, which a build may hold.
    """

    agent = TenantForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    # Kind, id, revision and label of the changed record, the author and the message.
    cause = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)
    # When a message for this build was put into the queue; NULL while it waits for a place in the queue.
    sent_at = models.DateTimeField(null=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.agent}: {self.cause.get('kind', '')}"
