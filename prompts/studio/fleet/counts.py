"""Counts above the matrix and completed setup steps of a workspace, loaded with one query."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, IntegerField, Min, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from core.db.fast import CompiledQuery
from personas.models import (
    Agent,
    AgentChannel,
    ApiKey,
    Invitation,
    Membership,
    Memory,
    MemoryStatus,
    Workspace,
)
from prompts.evidence.drift.selectors import list_never_released_reports
from prompts.models import AgentPrompt, BuildCause, LedgerEntry, PromptVersion, Release, ReleaseStatus
from skills.inbox.selectors import list_last_runs, list_pending_files
from skills.models import FileStatus, RunStatus
from skills.sources.selectors import list_source_holds

BUILT_WINDOW = timedelta(hours=24)


@dataclass(frozen=True)
class WorkspaceCounts:
    """Counts of agents, prompts and pending work, and which setup steps are done.

    `built` counts the versions built in the last 24 hours, `unbuilt` those whose last build failed.
    `never_released` counts the bots that have loaded a text that matches no version.
    """

    agents: int
    built: int
    unbuilt: int
    proposed: int
    requested: int
    waiting_files: int
    quarantined: int
    failing_sources: int
    held_sources: int
    never_released: int
    waiting_since: datetime | None
    has_channel: bool
    has_soul: bool
    has_key: bool
    has_fetch: bool
    has_company: bool


def get_workspace_counts(workspace: Workspace) -> WorkspaceCounts:
    now = timezone.now()
    [row] = query_counts(workspace.pk, now - BUILT_WINDOW, now)
    return WorkspaceCounts(**row)


@CompiledQuery
def query_counts(workspace: int, built_since: datetime, now: datetime) -> QuerySet[Any]:
    """Query all counts at once. Compiled: Django takes 30 ms to build it, a quarter of the fleet page."""
    annotations = (
        build_count_annotations(workspace, built_since, now)
        | build_setup_annotations(workspace)
        | {"waiting_since": build_oldest_cause_subquery(workspace)}
    )
    names = list(WorkspaceCounts.__annotations__)
    row: QuerySet[Any] = Workspace.objects.filter(pk=workspace).annotate(**annotations).values(*names)
    return row


def build_count_annotations(workspace: int, built_since: datetime, now: datetime) -> dict[str, Any]:
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(is_active=True)
    # `built` filters by prompt too, because versions are indexed by time only within a prompt.
    versions = PromptVersion.objects.in_workspace(workspace)
    files = list_pending_files(workspace)
    memories = Memory.objects.in_workspace(workspace).filter(archived_at=None)
    releases = Release.objects.in_workspace(workspace)
    querysets: dict[str, QuerySet[Any]] = {
        "agents": Agent.objects.in_workspace(workspace).filter(archived_at=None),
        "built": versions.filter(prompt__built_at__gte=built_since, created_at__gte=built_since),
        "unbuilt": prompts.exclude(problem=""),
        "proposed": memories.filter(status=MemoryStatus.PROPOSED),
        "requested": releases.filter(status=ReleaseStatus.REQUESTED),
        "waiting_files": files.exclude(status=FileStatus.QUARANTINED),
        "quarantined": files.filter(status=FileStatus.QUARANTINED),
        "failing_sources": list_last_runs(workspace).filter(status=RunStatus.FAILED),
        "held_sources": list_source_holds(workspace),
        "never_released": list_never_released_reports(workspace, now),
    }
    return {name: build_count_subquery(queryset) for name, queryset in querysets.items()}


def build_count_subquery(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().values("workspace").annotate(size=Count("pk")).values("size")
    return Coalesce(Subquery(counted), 0, output_field=IntegerField())


def build_oldest_cause_subquery(workspace: int) -> Subquery:
    rows = BuildCause.objects.in_workspace(workspace).order_by()
    return Subquery(rows.values("workspace").annotate(oldest=Min("at")).values("oldest"))


def build_setup_annotations(workspace: int) -> dict[str, Any]:
    members = Membership.objects.in_workspace(workspace).values("workspace").annotate(size=Count("pk"))
    invited = Invitation.objects.in_workspace(workspace).filter(withdrawn_at=None)
    return {
        "has_channel": Exists(AgentChannel.objects.in_workspace(workspace).filter(agent__archived_at=None)),
        "has_soul": Exists(Agent.objects.in_workspace(workspace).filter(archived_at=None).exclude(soul=None)),
        "has_key": Exists(ApiKey.objects.in_workspace(workspace)),
        "has_fetch": Exists(LedgerEntry.objects.in_workspace(workspace)),
        "has_company": Q(Exists(members.filter(size__gt=1))) | Q(Exists(invited)),
    }
