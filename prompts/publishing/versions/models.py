"""Models of prompts and their versions, which are immutable and form a hash chain."""

from django.db import models
from django.db.models import Q

from core.db.fields import CompactJSONField
from personas.models import Agent, Channel, ReleasePolicy, Workspace, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey


class AgentPrompt(WorkspaceOwned):
    """The prompt of an agent on a channel.

    The row is locked while a version is added, so version numbers have no gaps.
    """

    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="prompts")
    channel = TenantForeignKey(Channel, on_delete=models.PROTECT, related_name="prompts")
    last_number = models.PositiveIntegerField(default=0)
    last_hash = models.CharField(max_length=64, blank=True)
    latest = TenantForeignKey("PromptVersion", null=True, on_delete=models.PROTECT, related_name="+")
    last_move = models.PositiveIntegerField(default=0)
    last_move_hash = models.CharField(max_length=64, blank=True)
    # Whether the agent is active and uses the channel.
    is_active = models.BooleanField(default=True)
    built_at = models.DateTimeField(null=True)
    # Next time a memory becomes valid or expires, so that the prompt must be rebuilt without an edit.
    changes_at = models.DateTimeField(null=True)
    # Content digest of the report of the last build, which may be newer than the latest version: a build that
    # gives the same text adds no version.
    report = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Error message of the last build; empty if it succeeded.
    problem = models.CharField(max_length=1_000, blank=True)
    # Digest of the compiler for which a build was last requested. After an upgrade it differs from the digest
    # of the current compiler, and the periodic sweep requests a rebuild.
    compiler = models.CharField(max_length=20, blank=True)
    # Whether production is pinned: after a roll-back it keeps its version until the next release.
    is_pinned = models.BooleanField(default=False)
    # Whether production still needs approvals although the review of the agent was lifted. This ends when
    # production has the text of the latest version.
    is_review_kept = models.BooleanField(default=False, db_default=False)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["agent", "channel"], name="one_prompt_per_pair"),
            # Conflict target of the bulk upsert in builds.
            models.UniqueConstraint(fields=["workspace", "id"], name="prompts_by_workspace"),
        ]
        indexes = [
            models.Index(
                fields=["changes_at"], condition=Q(changes_at__isnull=False), name="prompts_by_change"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} · {self.channel}"

    @property
    def is_reviewed(self) -> bool:
        """Whether production gets only approved versions. Use this to ask for the policy of a prompt."""
        return self.agent.release_policy == ReleasePolicy.REVIEWED or self.is_review_kept


class PromptVersion(WorkspaceOwned):
    """One assembled prompt of an agent on a channel. Never changed, never deleted.

    The text is the concatenation of the segments. Text that comes from the workspace's records is stored in
    `Content` by digest: it is deduplicated, and can be erased while the segments and their hashes stay.
    """

    # Indexed by the unique constraint on prompt and number.
    prompt = TenantForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    # Covers text, slots, tools and skill files, but not their origins; a build with the same digest adds no
    # version.
    digest = models.CharField(max_length=64)
    text_digest = models.CharField(max_length=64)
    layout = models.CharField(max_length=40)
    compiler = models.CharField(max_length=20)
    segments = models.JSONField()
    # Content digests of the tool definitions for the provider (if any) and of the build report.
    tools = models.CharField(max_length=64, blank=True)
    report = models.CharField(max_length=64)
    # The SKILL.md of each skill that the version offers: name, content digest, size and origin. Bots read
    # skills as of a version: see prompts.serving.skill_files.
    skill_files = CompactJSONField(default=list, db_default=[])
    characters = models.PositiveIntegerField()
    # Tokens of the text as a plain fetch sends it, plus those of the tool definitions.
    tokens = models.PositiveIntegerField()
    # By section name: characters as built, and tokens as a plain fetch sends the section.
    sizes = CompactJSONField()
    # Full, or changes to the previous version's lockfile: see prompts.publishing.versions.lockfile.
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
            # Plain columns, no expression: under row-level security, PostgreSQL does not use an index for a
            # condition that calls a function.
            models.Index(fields=["workspace", "digest"], name="versions_by_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.prompt} v{self.number}"

    @property
    def text_tokens(self) -> int:
        """Tokens of the text as a plain fetch sends it."""
        return sum(tokens for _, tokens in self.sizes.values())

    @property
    def tool_tokens(self) -> int:
        """Tokens of the tool definitions."""
        return self.tokens - self.text_tokens


class VersionPart(WorkspaceOwned):
    """A change of the records in a prompt: from `version` on, the prompt uses a record or file at `revision`.

    A null revision means that the record is no longer used. Only changes are stored, so an edit adds one row,
    and every version that contains a record can still be found. Append-only.
    """

    # No separate index: the composite index below begins with the workspace and serves all queries.
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    prompt = TenantForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="+", db_index=False)
    version = TenantForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+", db_index=False)
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
