"""Versions: what was assembled, immutable and chained."""

from django.db import models
from django.db.models import Q

from core.db.fields import CompactJSONField
from personas.models import Agent, Channel, Workspace, WorkspaceOwned


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


class PromptVersion(WorkspaceOwned):
    """One assembled prompt of an agent on a channel. Never changed, never deleted.

    The text is the join of the segments; tenants' words lie in `Content` by digest, so that they are kept
    once, and can be erased while the list and its hashes stay.
    """

    # Found by the index of numbers.
    prompt = models.ForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    # Of the words, slots and tools, without where they came from: equal means no new version.
    digest = models.CharField(max_length=64)
    text_digest = models.CharField(max_length=64)
    layout = models.CharField(max_length=40)
    compiler = models.CharField(max_length=20)
    segments = models.JSONField()
    # Digests of contents: the definitions for the provider's interface, if any, and what became of the parts.
    tools = models.CharField(max_length=64, blank=True)
    report = models.CharField(max_length=64)
    characters = models.PositiveIntegerField()
    tokens = models.PositiveIntegerField()
    # By section: characters and tokens.
    sizes = CompactJSONField()
    # Whole, or as changes to that of the version before: see prompts.versions.lockfile.
    lockfile = CompactJSONField()
    causes = CompactJSONField()
    author_label = models.CharField(max_length=254)
    message = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["prompt", "number"], name="versions_numbered_once")]
        indexes = [
            models.Index(fields=["prompt", "-created_at"], name="versions_by_time"),
            # The plain column: behind row security no condition through a function can use an index.
            models.Index(fields=["workspace", "digest"], name="versions_by_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.prompt} v{self.number}"


class VersionPart(WorkspaceOwned):
    """From this version on its prompt holds a record or file at a revision; with none, it holds it no more.

    Only changes are kept: what a version does not mention stands as in the versions before it. So an edit
    leaves one row, and a record still finds every version that it is or was in. Append-only.
    """

    # The one index begins with the workspace and serves every question.
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    prompt = models.ForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="+", db_index=False)
    version = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    revision = models.PositiveIntegerField(null=True)

    class Meta(WorkspaceOwned.Meta):
        indexes = [
            models.Index(
                fields=["workspace", "kind", "object_id", "prompt", "version"], name="parts_by_record"
            )
        ]

    def __str__(self) -> str:
        return f"{self.version} {self.kind} {self.object_id}"
