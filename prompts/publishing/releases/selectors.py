"""Queries for releases and label usage, scoped to a workspace."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery

from personas.models import AuditEvent, Membership, User, Workspace
from personas.roles import ROLES_BY_PERMISSION, Permission
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    LabelRule,
    PromptLabel,
    Release,
    ReleaseComment,
    ReleaseItem,
    ReleaseReviewer,
)
from prompts.publishing.versions.timeline import HEAVY_COLUMNS, select_latest_version


def list_release_events(release: Release) -> QuerySet[AuditEvent]:
    """List what happened to a release, oldest first. Approvals stay listed after the release ends."""
    rows = AuditEvent.objects.in_workspace(release.workspace_id).filter(kind="release", object_id=release.pk)
    return rows.order_by("pk")


@dataclass(frozen=True)
class ReleaseTimelineEntry:
    """An audit event of a release, with its comment if it has one."""

    event: AuditEvent
    comment: ReleaseComment | None = None


def list_timeline(release: Release) -> list[ReleaseTimelineEntry]:
    """List what happened to a release with the comments on it, oldest first."""
    comments = {row.pk: row for row in list_comments(release)}
    return [
        ReleaseTimelineEntry(event, comments.get((event.after or {}).get("comment_id", 0)))
        for event in list_release_events(release)
    ]


def list_comments(release: Release) -> QuerySet[ReleaseComment]:
    rows = ReleaseComment.objects.in_workspace(release.workspace_id).filter(release=release)
    return rows.order_by("pk")


def list_release_reviewers(release: Release) -> list[ReleaseReviewer]:
    """List the members who were asked by name to review a release."""
    rows = ReleaseReviewer.objects.in_workspace(release.workspace_id).filter(release=release)
    return list(rows.select_related("user").order_by("pk"))


def list_possible_reviewers(workspace: Workspace | int, exclude: User | None) -> list[Membership]:
    """List the members who may approve a release of another user, `exclude`."""
    roles = list(ROLES_BY_PERMISSION[Permission.APPROVE])
    rows = Membership.objects.in_workspace(workspace).filter(role__in=roles, user__is_active=True)
    rows = rows.exclude(user=exclude) if exclude else rows
    return list(rows.select_related("user").order_by("user__name", "user__email"))


def get_release_mark(release: Release) -> str:
    """Return a text that changes when the release or the latest version of one of its prompts changes."""
    last = list_release_events(release).values_list("pk", flat=True).last() or 0
    items = ReleaseItem.objects.in_workspace(release.workspace_id).filter(release=release)
    latest = items.aggregate(newest=Max("prompt__latest_id"))["newest"] or 0
    return format_release_mark(release, last, latest)


def format_release_mark(release: Release, last_event: int, newest_version: int) -> str:
    return f"{release.status}.{last_event}.{newest_version}"


def hash_release_items(items: Sequence[ReleaseItem]) -> str:
    """Hash the exact versions of a release. Who approves it sends the hash of the versions on the page."""
    return sha256(repr(sorted((item.prompt_id, item.digest) for item in items)).encode()).hexdigest()


def list_releases(workspace: Workspace | int) -> QuerySet[Release]:
    """List releases, newest first, annotated with the number of prompts."""
    rows = Release.objects.in_workspace(workspace).annotate(prompt_count=Count("items"))
    return rows.order_by("-number")


def list_releasable_prompts(workspace: Workspace | int) -> QuerySet[AgentPrompt]:
    """List the live prompts whose latest version is not in production.

    They are annotated with id, number and tokens of the version that is in production.
    """
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"), name=PRODUCTION)
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_active=True, latest__isnull=False)
    rows = rows.annotate(
        in_production=Subquery(labels.values("version")[:1]),
        production_number=Subquery(labels.values("version__number")[:1]),
        production_tokens=Subquery(labels.values("version__tokens")[:1]),
    )
    rows = rows.filter(Q(in_production=None) | ~Q(in_production=F("latest")))
    return select_latest_version(rows).order_by("agent__name", "agent_id", "channel__name", "pk")


def list_release_items(release: Release) -> list[ReleaseItem]:
    """List the items of a release with their versions, without the large columns of the versions."""
    rows = ReleaseItem.objects.in_workspace(release.workspace_id).filter(release=release)
    rows = rows.select_related("prompt__latest", "version", "before")
    # Many items share an agent and a channel: each is loaded once.
    rows = rows.prefetch_related("prompt__agent", "prompt__channel")
    deferred = [
        f"{link}__{name}" for link in ("version", "before", "prompt__latest") for name in HEAVY_COLUMNS
    ]
    return list(rows.defer(*deferred).order_by("prompt__agent__name", "prompt__channel__name", "pk"))


def list_outdated_items(items: Sequence[ReleaseItem]) -> list[ReleaseItem]:
    """Return the items whose prompt was rebuilt with another digest after the release was requested."""
    return [item for item in items if not item.prompt.latest or item.prompt.latest.digest != item.digest]


def list_reviewed_agents(items: Sequence[ReleaseItem]) -> list[str]:
    """Return the agents of these items that require approval by a second user."""
    return sorted({str(item.prompt.agent) for item in items if item.prompt.is_reviewed})


@dataclass(frozen=True)
class LabelUsage:
    """A label, the number of prompts that have it, and whether it is protected (only owners may move it)."""

    name: str
    prompts: int
    is_protected: bool


def list_label_usage(workspace: Workspace | int) -> list[LabelUsage]:
    """List the labels of a workspace: production, then all others that are set or protected, by name.

    “latest” is left out, because it is set on every built prompt and cannot be moved.
    """
    rows = PromptLabel.objects.in_workspace(workspace).values_list("name")
    counts = dict(rows.annotate(count=Count("pk")).order_by("name"))
    rules = dict(LabelRule.objects.in_workspace(workspace).values_list("name", "is_protected"))
    ruled = {name for name, is_protected in rules.items() if is_protected}
    names = sorted({*counts, *ruled} - {PRODUCTION, LATEST})
    return [LabelUsage(name, counts.get(name, 0), name in ruled) for name in (PRODUCTION, *names)]
