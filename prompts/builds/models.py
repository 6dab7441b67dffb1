"""One agent on one channel: the line its versions are numbered in, and what waits to be built."""

from django.db import models
from django.db.models import Q

from personas.models import Agent, Channel, WorkspaceOwned


class AgentPrompt(WorkspaceOwned):
    """What an agent is told on a channel; locked while a version is added, so numbers have no gaps."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="prompts")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="prompts")
    last_number = models.PositiveIntegerField(default=0)
    last_hash = models.CharField(max_length=64, blank=True)
    latest = models.ForeignKey("PromptVersion", null=True, on_delete=models.PROTECT, related_name="+")
    last_move = models.PositiveIntegerField(default=0)
    last_move_hash = models.CharField(max_length=64, blank=True)
    # The pair exists still: the agent is in use and speaks on the channel.
    is_live = models.BooleanField(default=True)
    built_at = models.DateTimeField(null=True)
    # When a memory it holds begins or ends to hold, so that it must be looked at without any edit.
    changes_at = models.DateTimeField(null=True)
    # Why the last build left everything as it was, in words; empty when it went well.
    problem = models.CharField(max_length=1_000, blank=True)
    # For which compiler a build was last asked for: another one, after an upgrade, makes the sweep ask again.
    compiler = models.CharField(max_length=20, blank=True)
    # After a roll-back production stays where it was put, until someone releases again.
    is_held = models.BooleanField(default=False)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["agent", "channel"], name="one_prompt_per_pair"),
            # Builds write many prompts as rows that are there already, told by this key.
            models.UniqueConstraint(fields=["workspace", "id"], name="prompts_by_workspace"),
        ]
        indexes = [
            models.Index(
                fields=["changes_at"], condition=Q(changes_at__isnull=False), name="prompts_by_change"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} · {self.channel}"


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
