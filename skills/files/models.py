"""Context files, their revisions, waivers and assigned agents."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField
from personas.models import Agent, Content, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey
from skills.discovery.harnesses import FILE_KINDS
from skills.sources.models import Source


class FileStatus(models.TextChoices):
    """The status of a context file as shown to users."""

    NEW = "new", _("New")
    CURRENT = "current", _("Current")
    CHANGED = "changed", _("Changed")
    MISSING = "missing", _("Missing")
    INVALID = "invalid", _("Invalid")
    QUARANTINED = "quarantined", _("Quarantined")
    IGNORED = "ignored", _("Ignored")


class AssignedTo(models.TextChoices):
    """Which agents a discovered skill is for."""

    WHERE_FOUND = "where_found", _("Agents whose rules match this skill")
    ALL = "all", _("All agents")
    SELECTED = "selected", _("Selected agents")


class ContextFile(WorkspaceOwned):
    """A discovered file; its content is stored in its revisions."""

    source = TenantForeignKey(Source, on_delete=models.PROTECT, related_name="files")
    path = models.CharField(max_length=1_000)
    file_kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in FILE_KINDS])
    status = models.CharField(max_length=11, choices=FileStatus.choices, default=FileStatus.NEW)
    # Why the last refresh could not read the file. Parsing problems are stored on the revision instead.
    problem = models.CharField(max_length=500, blank=True)
    exists = models.BooleanField(default=True)
    is_ignored = models.BooleanField(default=False)
    # latest: the last revision found in the source. approved: the last revision that a user approved.
    # active: the revision that prompts use.
    latest = TenantForeignKey(
        "FileRevision", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    approved = TenantForeignKey(
        "FileRevision", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    active = TenantForeignKey("FileRevision", null=True, on_delete=models.PROTECT, related_name="used_by")
    # Whether a user has dealt with the current status. The inbox shows only files where this is False.
    is_resolved = models.BooleanField(default=False)
    # Stamp from when the content was last read. A refresh reads the file again only if its stamp differs.
    size = models.BigIntegerField(default=0)
    mtime_ns = models.BigIntegerField(default=0)
    ctime_ns = models.BigIntegerField(default=0, db_default=0)
    inode = models.BigIntegerField(default=0)
    # Name, trusted digest and assignment are used for skills only.
    name = models.CharField(max_length=200, blank=True)
    trusted_digest = models.CharField(max_length=64, blank=True)
    # Digest of content that a user reverted. While it is the latest, prompts use the approved revision.
    rejected_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    assigned_to = models.CharField(max_length=11, choices=AssignedTo.choices, default=AssignedTo.WHERE_FOUND)
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta(WorkspaceOwned.Meta):
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["source", "path"], name="file_once_per_source"),
            models.CheckConstraint(condition=Q(status__in=FileStatus.values), name="file_status_known"),
            models.CheckConstraint(
                condition=Q(assigned_to__in=AssignedTo.values), name="file_assignment_known"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "is_resolved", "status"], name="files_by_status"),
            models.Index(fields=["workspace", "file_kind", "name"], name="files_by_name"),
        ]

    def __str__(self) -> str:
        return self.path


class Verdict(models.TextChoices):
    """The result of evaluating a revision."""

    GOOD = "good", _("Valid")
    INVALID = "invalid", _("Invalid")
    BLOCKED = "blocked", _("Quarantined")


class FileRevision(WorkspaceOwned):
    """One content of a file. A refresh that finds different content creates the next revision."""

    file = TenantForeignKey(ContextFile, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    content = TenantForeignKey(Content, on_delete=models.PROTECT, related_name="+")
    size = models.PositiveIntegerField()
    verdict = models.CharField(max_length=7, choices=Verdict.choices)
    # Scanner findings and parsing problems. Each is a list of JSON objects.
    findings = models.JSONField(default=list)
    problems = models.JSONField(default=list)
    # The front matter of a skill, stored so that building a prompt does not parse it again.
    head = models.JSONField(default=dict)
    first_seen_at = models.DateTimeField()
    # When this content was last seen. None for the current content, because the time of the source's last
    # refresh applies.
    last_seen_at = models.DateTimeField(null=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["file", "number"], name="file_revisions_numbered_once"),
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="file_verdict_known"),
        ]
        indexes = [models.Index(fields=["workspace", "digest"], name="revisions_by_digest")]

    def __str__(self) -> str:
        return f"{self.file} r{self.number}"


class Waiver(WorkspaceOwned):
    """A permission to use quarantined content of a file until a date. It applies to one digest only."""

    file = TenantForeignKey(ContextFile, on_delete=models.CASCADE, related_name="waivers")
    digest = models.CharField(max_length=64)
    reason = LineField(max_length=500)
    until = models.DateField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = models.CharField(max_length=254)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["file", "digest"], condition=Q(ended_at=None), name="one_open_waiver"
            )
        ]

    def __str__(self) -> str:
        return f"{self.file} until {self.until}"


class FileAgent(WorkspaceOwned):
    """Assignment of a discovered skill to an agent, used with `AssignedTo.SELECTED`."""

    file = TenantForeignKey(ContextFile, on_delete=models.CASCADE, related_name="agent_links")
    agent = TenantForeignKey(Agent, on_delete=models.CASCADE, related_name="file_links")

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["file", "agent"], name="file_once_per_agent")]

    def __str__(self) -> str:
        return f"{self.file} · {self.agent}"
