"""Models of sources: allowed folders, sources, pushed files and refresh runs."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import (
    F,
    Q,
)
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField
from personas.models import Agent, Content, Named, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey, TenantOneToOneField
from skills.discovery.harnesses import HARNESSES
from skills.sources.locations import find_location_problem, normalize_location


class AllowedFolder(WorkspaceOwned):
    """A folder that operators allow one workspace to read. Members cannot create or extend them."""

    path = LineField(max_length=1_000, help_text=_("One of the allowed roots, or a folder below one."))
    note = LineField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "path"], name="allowed_folder_once")]

    def __str__(self) -> str:
        return self.path

    def clean(self) -> None:
        super().clean()
        # Checked only for a new row, so that the note can still be edited after operators have withdrawn
        # the root. Each refresh checks the folder again.
        if self._state.adding and not is_folder_allowed(self.path):
            raise ValidationError(
                {
                    "path": gettext(
                        "The folder is not below any of the roots in DRAMATIS_SOURCE_ROOTS. "
                        "Choose one of these roots or a folder below one."
                    )
                }
            )


def is_folder_allowed(path: str) -> bool:
    """Return whether the path is, or lies below, one of the root folders that operators allow.

    Each refresh calls this too, because operators can withdraw a root.
    """
    folder = PurePosixPath(path)
    if not folder.is_absolute() or ".." in folder.parts:
        return False
    return any(folder.is_relative_to(Path(root)) for root in settings.DRAMATIS_SOURCE_ROOTS)


class SourceKind(models.TextChoices):
    """How the files of a source arrive."""

    FOLDER = "folder", _("A folder that workers read")
    PUSHED = "pushed", _("Files pushed by upload or API")


class Approval(models.TextChoices):
    """Whether new revisions are used in prompts automatically or after approval."""

    AUTOMATIC = "automatic", _("Automatic: use changes immediately if the scan passes")
    MANUAL = "manual", _("Manual: review each change")


def get_default_approval() -> Approval:
    """Return the approval of new sources: nothing goes to prompts before a member has approved it."""
    return Approval.MANUAL


def every_harness() -> list[str]:
    return list(HARNESSES)


class Source(Named):
    """A granted folder, or a set of pushed files, in which context files and skills are discovered."""

    kind = "source"
    content = (
        *("name", "allowed_folder", "folder", "location", "harnesses", "approval", "refresh_minutes"),
        "allow_hard_links",
    )

    source_kind = models.CharField(max_length=6, choices=SourceKind.choices, default=SourceKind.FOLDER)
    allowed_folder = TenantForeignKey(
        AllowedFolder, null=True, blank=True, on_delete=models.PROTECT, related_name="sources"
    )
    folder = LineField(max_length=1_000, blank=True)
    # Where the bots that read this source find its root: an absolute path on their machine. Prompts print
    # paths below it. Empty: prompts print paths relative to the root.
    location = LineField(max_length=1_000, blank=True, default="", db_default="")
    # Names of rule sets. A refresh stores the files that any of them matches. Each agent that reads this
    # source uses one of them.
    harnesses = models.JSONField(default=every_harness, blank=True)
    approval = models.CharField(max_length=9, choices=Approval.choices, default=Approval.AUTOMATIC)
    # Minutes between scheduled refreshes. None: refresh only on request.
    refresh_minutes = models.PositiveIntegerField(null=True, blank=True, default=15)
    # Whether files with several hard links are read. Such a file may also have a name outside of the folder.
    allow_hard_links = models.BooleanField(default=False, db_default=False)

    class Meta(Named.Meta):
        constraints = [
            *Named.Meta.constraints,
            models.CheckConstraint(
                condition=Q(source_kind="pushed", allowed_folder=None)
                | Q(source_kind="folder", allowed_folder__isnull=False),
                name="source_has_its_folder",
            ),
            models.CheckConstraint(condition=Q(approval__in=Approval.values), name="source_approval_known"),
            models.CheckConstraint(
                condition=Q(refresh_minutes=None) | Q(refresh_minutes__range=(1, 10_080)),
                name="source_schedule_sane",
                violation_error_message=_("Enter 1 to 10,080 minutes (a week), or leave it empty."),
            ),
        ]

    def set_values(self, values: dict[str, Any]) -> None:
        if self._state.adding and "approval" not in values:
            self.approval = get_default_approval()
        super().set_values(values)

    def clean(self) -> None:
        super().clean()
        problems: dict[str, str] = {}
        if self.source_kind == SourceKind.FOLDER and self.allowed_folder is None:
            problems["allowed_folder"] = gettext("Choose an allowed folder.")
        if self.source_kind == SourceKind.PUSHED and (self.allowed_folder is not None or self.folder):
            problems["folder"] = gettext("Pushed files have no folder on disk. Leave this empty.")
        if self.source_kind == SourceKind.PUSHED and self.allow_hard_links:
            problems["allow_hard_links"] = gettext("Pushed files have no hard links. Leave this off.")
        if problem := find_source_folder_problem(self.folder):
            problems["folder"] = problem
        if problem := find_location_problem(self.location):
            problems["location"] = problem
        self.location = normalize_location(self.location)
        if not isinstance(self.harnesses, list) or not self.harnesses or set(self.harnesses) - set(HARNESSES):
            problems["harnesses"] = gettext("Select at least one set of discovery rules.")
        if problems:
            raise ValidationError(problems)

    def agent_ids(self) -> list[int]:
        """List the ids of the active agents that read this source, including those that inherit it."""
        choices = AgentContext.objects.in_workspace(self.workspace_id)
        choosing_ids = set(choices.filter(uses__source=self).values_list("agent_id", flat=True))
        deciding_ids = set(choices.values_list("agent_id", flat=True))
        agents = Agent.objects.in_workspace(self.workspace_id).filter(archived_at=None)
        parents: dict[int, int | None] = dict(agents.values_list("pk", "parent_id"))
        deciders = ((pk, _find_deciding_agent(pk, parents, deciding_ids)) for pk in parents)
        return sorted(pk for pk, decider in deciders if decider is not None and decider in choosing_ids)


def _find_deciding_agent(
    agent_id: int, parents: Mapping[int, int | None], deciding_ids: set[int]
) -> int | None:
    """Return the nearest agent in the parent chain, starting with this one, that has an AgentContext row."""
    current: int | None = agent_id
    while current is not None and current not in deciding_ids:
        current = parents.get(current)
    return current


def find_source_folder_problem(folder: str) -> str:
    """Return why this is not a valid relative path below the granted folder, or an empty string.

    SafeRoot refuses such paths too when it opens them. This check lets the form show the error.
    """
    if not folder:
        return ""
    names = folder.split("/")
    if folder.startswith(("/", "~")) or "\\" in folder:
        return gettext("Enter a path relative to the allowed folder. Separate folder names with /.")
    if {"", ".", ".."} & set(names) or len(names) > 20:
        return gettext("Names in a path cannot be empty, . or .., and a path can be at most 20 levels deep.")
    return "" if folder.isprintable() else gettext("The path contains unprintable characters. Remove them.")


class AgentContext(WorkspaceOwned):
    """The rule set of an agent and its settings for context files and skills. `uses` are its sources.

    Without a source, the agent reads no files. An agent that has no such row inherits the row of its nearest
    ancestor.
    """

    agent = TenantOneToOneField(Agent, on_delete=models.CASCADE, related_name="context")
    harness = LineField(max_length=40, default="plain")
    # Whether prompts contain context files and workspace files, and whether they contain skills.
    has_context_files = models.BooleanField(default=True, db_default=True)
    has_skills = models.BooleanField(default=True, db_default=True)
    # Names of context files, such as AGENTS.md. Empty: the names in the rule set.
    file_names = models.JSONField(
        default=list, blank=True, db_default=models.Value([], output_field=models.JSONField())
    )
    # Additional skill folders: below the project's root, below the home directory (~/…), or absolute.
    extra_skill_folders = models.JSONField(
        default=list, blank=True, db_default=models.Value([], output_field=models.JSONField())
    )
    # The folder on the bot's machine that `dramatis pull` fills with the skills that have no file. Empty:
    # prompts print the URL of each skill.
    pulled_skills_folder = LineField(max_length=1_000, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.agent} · {self.harness}"


class SourceScope(models.TextChoices):
    """Which files of a source an agent reads: those of the home directory, of the project, or both."""

    BOTH = "both", _("Project and home directory")
    PROJECT = "project", _("Project")
    HOME = "home", _("Home directory")


class AgentSource(WorkspaceOwned):
    """A source that an agent reads. The last of an agent's sources has the highest priority."""

    context = TenantForeignKey(AgentContext, on_delete=models.CASCADE, related_name="uses")
    source = TenantForeignKey(Source, on_delete=models.PROTECT, related_name="agent_uses")
    scope = models.CharField(max_length=7, choices=SourceScope.choices, default=SourceScope.BOTH)
    # Replaces the location of the source for this agent. Empty: the location of the source.
    location = LineField(max_length=1_000, blank=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["context", "source"], name="agent_source_once"),
            models.CheckConstraint(
                condition=Q(scope__in=SourceScope.values), name="agent_source_scope_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.context} · {self.source}"

    @property
    def bot_location(self) -> str:
        """Where the root of the source lies for this agent's bots, or an empty string."""
        return self.location or self.source.location


class PushedFile(WorkspaceOwned):
    """A file pushed by upload or API. A refresh of its source reads these rows instead of a folder."""

    source = TenantForeignKey(Source, on_delete=models.CASCADE, related_name="pushed_files")
    path = models.CharField(max_length=1_000)
    content = TenantForeignKey(Content, on_delete=models.PROTECT, related_name="+")
    pushed_at = models.DateTimeField(auto_now=True)
    # The API key that first pushed the file; for a rotated key, the first key of its chain. None: a member
    # uploaded the file first, or it was pushed before this field existed.
    pushed_by = TenantForeignKey(
        "personas.ApiKey", null=True, blank=True, db_index=False, on_delete=models.PROTECT, related_name="+"
    )

    class Meta(WorkspaceOwned.Meta):
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["source", "path"], name="pushed_path_once")]

    def __str__(self) -> str:
        return self.path


class RunStatus(models.TextChoices):
    """Status of a refresh run."""

    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    # Most files were missing. Nothing was changed; a person confirms the removal or restores the files.
    HELD = "held", _("Held")
    FAILED = "failed", _("Failed")
    LOST = "lost", _("Interrupted")


FINISHED_STATUSES = (RunStatus.DONE, RunStatus.HELD, RunStatus.FAILED)


class RefreshRun(WorkspaceOwned):
    """One refresh of a source: queued, claimed by a worker with a lease, then done, held, failed or lost."""

    source = TenantForeignKey(Source, on_delete=models.CASCADE, related_name="runs")
    status = models.CharField(max_length=7, choices=RunStatus.choices, default=RunStatus.QUEUED)
    # Why the run was requested, such as "person", "schedule", "watch", "push", "confirmed" (a removal) or
    # "lost" (a retry).
    cause = models.CharField(max_length=20)
    actor_label = models.CharField(max_length=254)
    requested_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    # The worker extends this time while it makes progress. After this time the worker counts as dead.
    leased_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    seen = models.PositiveIntegerField(default=0)
    read = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    # Number of files by the status that they entered in this run.
    outcome = models.JSONField(default=dict)
    # Path, rule and reason of each refused file, as returned by discovery.
    refusals = models.JSONField(default=list)
    # Number and paths of the missing files of a held run.
    missing = models.PositiveIntegerField(default=0, db_default=0)
    missing_paths = models.JSONField(null=True)
    # Paths whose removal was confirmed. Their absence does not hold this run.
    confirmed_paths = models.JSONField(null=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=Q(status="running"), name="one_refresh_at_a_time"
            ),
            models.UniqueConstraint(
                fields=["source"], condition=Q(status="queued"), name="one_queued_refresh"
            ),
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="run_status_known"),
        ]
        indexes = [models.Index(F("source"), F("id").desc(), name="runs_of_a_source")]

    def __str__(self) -> str:
        return f"{self.source} · {self.status}"

    @property
    def is_open(self) -> bool:
        return self.status in {RunStatus.QUEUED, RunStatus.RUNNING}
