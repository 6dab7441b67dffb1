"""BuildCause: why an agent's prompts must be built again."""

from django.db import models

from personas.models import Agent, WorkspaceOwned


class BuildCause(WorkspaceOwned):
    """Why an agent's prompts must be built again; copied into the next version, then deleted.

    Written in the transaction of the change (transactional outbox), so it exists exactly if the change does.
    As a separate row it needs no lock on the prompt.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    # Kind, id, revision and label of the changed record, the author and the message.
    cause = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.agent}: {self.cause.get('kind', '')}"
