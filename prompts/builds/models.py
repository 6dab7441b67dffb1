"""BuildCause: why an agent's prompts must be built again."""

from django.db import models

from personas.models import Agent, WorkspaceOwned


class BuildCause(WorkspaceOwned):
    """Why an agent's prompts must be built again; taken into the next version, then gone.

    Written in the transaction that changed something, so it is there exactly when the change is; and being
    a row of its own it waits for nobody's lock.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    # Kind, id, revision and label of what changed, by whom, with what message.
    cause = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.agent}: {self.cause.get('kind', '')}"
