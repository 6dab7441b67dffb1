"""Queries for sources: last runs, file statuses and readers."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, OuterRef, QuerySet, Subquery

from personas.models import Workspace
from skills.models import (
    AgentContext,
    AllowedFolder,
    ContextFile,
    FileStatus,
    PushedFile,
    RefreshRun,
    RunStatus,
    Source,
)
from skills.sources.readers import SourceReader, get_readers_by_agent

# Columns of a run that hold one item per file.
RUN_PATH_LISTS = ("refusals", "missing_paths", "confirmed_paths")
# The statuses of runs that have looked at all files.
SCANNED_STATUSES = (RunStatus.DONE, RunStatus.HELD)


@dataclass(frozen=True)
class SourceSummary:
    """A source with the data that its row in the list of sources shows."""

    source: Source
    # The last requested run, which may still be queued or running.
    run: RefreshRun | None = None
    refreshed_at: datetime | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    readers: Sequence[SourceReader] = ()

    @property
    def slug(self) -> str:
        return self.source.slug

    @property
    def file_count(self) -> int:
        return sum(self.statuses.values())

    @property
    def more_readers(self) -> int:
        return max(len(self.readers) - 3, 0)


def list_allowed_folders(workspace: Workspace) -> QuerySet[AllowedFolder]:
    return AllowedFolder.objects.in_workspace(workspace).order_by("path")


def list_sources(workspace: Workspace | int) -> QuerySet[Source]:
    """List sources, annotated with the id of the last run and the time when the last finished run ended."""
    runs = RefreshRun.objects.in_workspace(workspace).filter(source=OuterRef("pk")).order_by("-pk")
    return (
        Source.objects.in_workspace(workspace)
        .select_related("allowed_folder", "workspace")
        .annotate(
            last_run_id=Subquery(runs.values("pk")[:1]),
            refreshed_at=Subquery(runs.exclude(finished_at=None).values("finished_at")[:1]),
        )
        .order_by("name", "pk")
    )


def list_source_summaries(workspace: Workspace, sources: Iterable[Source]) -> list[SourceSummary]:
    """Build summaries for rows of `list_sources`, with five queries in total."""
    rows = list(sources)
    runs = RefreshRun.objects.in_workspace(workspace).defer(*RUN_PATH_LISTS)
    last_runs = runs.in_bulk([row.last_run_id for row in rows if row.last_run_id])  # type: ignore[attr-defined]  # annotated
    statuses, readers = count_statuses_by_source(workspace, rows), get_readers_by_source(workspace)
    return [
        SourceSummary(
            row,
            last_runs.get(row.last_run_id),  # type: ignore[attr-defined]  # annotated
            row.refreshed_at,  # type: ignore[attr-defined]  # annotated
            statuses[row.pk],
            readers[row.pk],
        )
        for row in rows
    ]


def count_statuses_by_source(workspace: Workspace, sources: Iterable[Source]) -> dict[int, dict[str, int]]:
    """Count the files of each source by status, in the order of FileStatus."""
    files = ContextFile.objects.in_workspace(workspace).filter(source__in=[row.pk for row in sources])
    counts_by_source: dict[int, Counter[str]] = defaultdict(Counter)
    for source_id, status, count in files.values_list("source_id", "status").annotate(Count("pk")).order_by():
        counts_by_source[source_id][status] = count
    return defaultdict(dict, {pk: sort_status_counts(counts) for pk, counts in counts_by_source.items()})


def sort_status_counts(counts: Counter[str]) -> dict[str, int]:
    return {status: counts[status] for status in FileStatus.values if counts[status]}


def get_readers_by_source(workspace: Workspace) -> dict[int, list[SourceReader]]:
    """Return, by source id, the readers of the active agents that read the source, sorted by agent name."""
    readers: dict[int, list[SourceReader]] = defaultdict(list)
    for context_reader in sorted(
        get_readers_by_agent(workspace).values(), key=lambda reader: reader.agent.name.casefold()
    ):
        if not context_reader.agent.is_archived:
            for reader in context_reader.sources:
                readers[reader.source.pk].append(reader)
    return readers


def list_refresh_runs(source: Source) -> QuerySet[RefreshRun]:
    """List the runs of a source, newest first. The lists of paths are deferred because they can be large."""
    runs = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source)
    return runs.defer(*RUN_PATH_LISTS).order_by("-pk")


def list_source_holds(workspace: Workspace | int) -> QuerySet[RefreshRun]:
    """List the held run of each active source whose last run that did not fail is held."""
    runs = RefreshRun.objects.in_workspace(workspace)
    of_source = runs.filter(source=OuterRef("pk"), status__in=SCANNED_STATUSES).order_by("-pk")
    sources = Source.objects.in_workspace(workspace).filter(archived_at=None).order_by()
    latest = sources.annotate(latest=Subquery(of_source.values("pk")[:1])).values("latest")
    held = runs.filter(pk__in=latest, status=RunStatus.HELD).select_related("source")
    return held.defer("refusals", "confirmed_paths").order_by("source__name", "source_id")


def get_source_hold(source: Source) -> RefreshRun | None:
    """Return the held run that waits for a confirmation, or None. Failed runs do not end a hold."""
    runs = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source)
    last = (
        runs.filter(status__in=SCANNED_STATUSES).defer("refusals", "confirmed_paths").order_by("-pk").first()
    )
    return last if last and last.status == RunStatus.HELD else None


def list_source_files(source: Source, status: str = "") -> QuerySet[ContextFile]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    rows = rows.select_related("latest", "active").order_by("path")
    return rows.filter(status=status) if status else rows


def count_pushed_files(source: Source) -> int:
    return PushedFile.objects.in_workspace(source.workspace_id).filter(source=source).count()


def list_lost_readers(source: Source, harnesses: Iterable[str]) -> list[AgentContext]:
    """List the AgentContext rows of active agents that use this source with a rule set not in `harnesses`."""
    choices = AgentContext.objects.in_workspace(source.workspace_id).filter(uses__source=source)
    others = choices.filter(agent__archived_at=None).exclude(harness__in=list(harnesses))
    return list(others.select_related("agent").order_by("agent__name"))
