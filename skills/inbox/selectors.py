"""Queries of the inbox: pending files by severity, counts per filter, and files that refreshes refused."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import (
    Case,
    Count,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import MD5, Cast, Coalesce

from core.db.compiled_query import CompiledQuery
from personas.models import Workspace
from skills.files.reasons import STATUSES_BY_SEVERITY
from skills.files.selectors import NEEDS_REVIEW
from skills.models import ContextFile, FileAgent, RefreshRun, Source
from skills.sources.models import FINISHED_STATUSES

MAX_REFUSALS = 20
# At least one of these aggregates over the pending files changes when a file is added, removed or changed.
FINGERPRINT_AGGREGATES = {
    "size": Count("pk"),
    "keys": Sum("pk"),
    "last_change": Max("changed_at"),
    "last_revision": Max("latest_id"),
    "used": Sum("active_id"),
}


def list_pending_files(workspace: Workspace | int) -> QuerySet[ContextFile]:
    """Return the files whose current status still needs a user's decision, except in archived sources."""
    rows = ContextFile.objects.in_workspace(workspace)
    return rows.filter(NEEDS_REVIEW)


def has_sources(workspace: Workspace) -> bool:
    return Source.objects.in_workspace(workspace).filter(archived_at=None).exists()


def count_pending_files(workspace: Workspace) -> int:
    """Count the pending files. Compiled, because the navigation of every page shows the number."""
    return sum(query_pending_count(workspace.pk))


@CompiledQuery
def query_pending_count(workspace: int) -> "QuerySet[Any, int]":
    rows = list_pending_files(workspace).order_by().values("workspace").annotate(size=Count("pk"))
    sizes: QuerySet[Any, int] = rows.values_list("size", flat=True)
    return sizes


@dataclass(frozen=True)
class InboxFilter:
    """Filters of the inbox. An empty field means that this filter is not set."""

    status: str = ""
    source: str = ""
    search: str = ""

    def filter_files(self, workspace: Workspace) -> QuerySet[ContextFile]:
        rows = list_pending_files(workspace)
        if self.search:
            rows = rows.filter(path__icontains=self.search)
        if self.source:
            rows = rows.filter(source__slug=self.source)
        return rows.filter(status=self.status) if self.status else rows


def list_inbox_files(workspace: Workspace, filters: InboxFilter) -> QuerySet[ContextFile]:
    """Return the pending files that match the filters, the most severe status first.

    All data that a row of the inbox shows is loaded with this query.
    """
    links = FileAgent.objects.in_workspace(workspace).filter(file=OuterRef("pk"), agent__archived_at=None)
    chosen = links.order_by().values("file").annotate(size=Count("pk")).values("size")
    severity = Case(
        *(When(status=status, then=Value(place)) for place, status in enumerate(STATUSES_BY_SEVERITY)),
        output_field=IntegerField(),
    )
    rows = filters.filter_files(workspace).select_related("source", "latest", "active", "approved")
    unused_columns = [
        f"{link}__{name}" for link in ("active", "approved") for name in ("head", "findings", "problems")
    ]
    rows = rows.defer(*unused_columns)
    rows = rows.annotate(chosen_count=Coalesce(Subquery(chosen), 0), severity=severity)
    return rows.order_by("severity", "-changed_at", "path", "pk")


@dataclass(frozen=True)
class InboxGroup:
    """The pending files with the same status and source.

    `matching` counts the files that match the search text. `fingerprint` changes if any file changes.
    """

    status: str
    slug: str
    name: str
    matching: int
    fingerprint: tuple[Any, ...]


def list_inbox_groups(workspace: Workspace, search: str = "") -> list[InboxGroup]:
    """Count the pending files by status and source with one query."""
    matching = Count("pk", filter=Q(path__icontains=search)) if search else Count("pk")
    rows = list_pending_files(workspace).order_by("status", "source__slug")
    groups: Any = rows.values("status", "source__slug", "source__name").annotate(
        matching=matching, **FINGERPRINT_AGGREGATES
    )
    return [
        InboxGroup(
            row["status"],
            row["source__slug"],
            row["source__name"],
            row["matching"],
            tuple(row[name] for name in FINGERPRINT_AGGREGATES),
        )
        for row in groups
    ]


@dataclass
class InboxCounts:
    """Number of pending files by status and by source."""

    statuses: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    total: int = 0

    @property
    def all_statuses(self) -> int:
        return self.statuses.total()

    @property
    def all_sources(self) -> int:
        return self.sources.total()


def build_inbox_counts(groups: Iterable[InboxGroup], filters: InboxFilter) -> InboxCounts:
    """Compute faceted counts for the filter options.

    The counts of statuses respect the source filter, and the counts of sources respect the status filter.
    """
    counts = InboxCounts()
    for group in groups:
        counts.names[group.slug] = group.name
        is_status, is_source = filters.status in {"", group.status}, filters.source in {"", group.slug}
        counts.statuses[group.status] += group.matching if is_source else 0
        counts.sources[group.slug] += group.matching if is_status else 0
        counts.total += group.matching if is_status and is_source else 0
    return counts


# --- refusals: files that the last refresh of a source refused to read ---------------------------------


def list_last_runs(workspace: Workspace | int) -> QuerySet[RefreshRun]:
    """Return the last finished refresh run of each source that is not archived."""
    runs = RefreshRun.objects.in_workspace(workspace)
    of_source = (
        runs.filter(source=OuterRef("pk"), status__in=FINISHED_STATUSES).order_by("-pk").values("pk")[:1]
    )
    sources = Source.objects.in_workspace(workspace).filter(archived_at=None)
    latest = sources.order_by().annotate(latest=Subquery(of_source)).values("latest")
    return runs.filter(pk__in=latest).select_related("source").order_by("source__name", "source_id")


def list_runs_with_refusals(workspace: Workspace | int) -> QuerySet[Any]:
    """Return the last run of each source if it refused files, annotated with a digest of the refusals."""
    digest = MD5(Cast("refusals", TextField()))
    return list_last_runs(workspace).filter(refused__gt=0).annotate(refusals_digest=digest)


def list_refusal_digests(workspace: Workspace | int) -> list[tuple[int, str]]:
    """Return pairs of source id and digest of its refusals. The refusals themselves are not loaded."""
    return list(list_runs_with_refusals(workspace).values_list("source_id", "refusals_digest"))


@dataclass(frozen=True)
class SourceRefusals:
    """The refusals of one source's last refresh, except for stored files, which have their own page.

    `more` is the number of refusals that are not in the list, because it is limited to MAX_REFUSALS.
    """

    run: RefreshRun
    refusals: list[dict[str, Any]]
    more: int


def list_source_refusals(runs: Iterable[RefreshRun], known: Mapping[int, set[str]]) -> list[SourceRefusals]:
    refusals_by_source = []
    for run in runs:
        files = known.get(run.source_id, set())
        refusals = [refusal for refusal in run.refusals if refusal["path"] not in files]
        if refusals:
            more = max(0, len(refusals) - MAX_REFUSALS)
            refusals_by_source.append(SourceRefusals(run, refusals[:MAX_REFUSALS], more))
    return refusals_by_source


def get_inbox_fingerprint(
    groups: Iterable[InboxGroup], refusals: Iterable[tuple[int, str]], holds: Iterable[RefreshRun]
) -> tuple[Any, ...]:
    """Return a value that changes whenever the content of the inbox changes."""
    return (
        [(group.status, group.slug, group.fingerprint) for group in groups],
        list(refusals),
        [hold.pk for hold in holds],
    )
