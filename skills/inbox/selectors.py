"""What waits for someone: counted, gravest first, and what the last looks refused."""

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

from personas.models import Workspace
from skills.files.reasons import STATES_BY_SEVERITY
from skills.models import ContextFile, FileAgent, RefreshRun, Source
from skills.sources.models import FINISHED_STATUSES

MAX_REFUSALS = 20
# Together they differ whenever files come, go or change.
FINGERPRINT_AGGREGATES = {
    "size": Count("pk"),
    "keys": Sum("pk"),
    "last_change": Max("changed_at"),
    "last_revision": Max("newest_id"),
    "used": Sum("in_force_id"),
}


def list_pending_files(workspace: Workspace | int) -> QuerySet[ContextFile]:
    """Files whose state nobody has dealt with; a source that is out of use asks for nothing."""
    rows = ContextFile.objects.in_workspace(workspace)
    return rows.filter(is_settled=False, state__in=STATES_BY_SEVERITY, source__archived_at=None)


def has_sources(workspace: Workspace) -> bool:
    return Source.objects.in_workspace(workspace).filter(archived_at=None).exists()


def count_pending_files(workspace: Workspace) -> int:
    return list_pending_files(workspace).count()


@dataclass(frozen=True)
class InboxFilter:
    """What someone wants to see of the inbox; empty words want everything."""

    state: str = ""
    source: str = ""
    words: str = ""

    def rows(self, workspace: Workspace) -> QuerySet[ContextFile]:
        rows = list_pending_files(workspace)
        if self.words:
            rows = rows.filter(path__icontains=self.words)
        if self.source:
            rows = rows.filter(source__slug=self.source)
        return rows.filter(state=self.state) if self.state else rows


def list_inbox_files(workspace: Workspace, wanted: InboxFilter) -> QuerySet[ContextFile]:
    """The rows of the inbox with all that a row shows."""
    links = FileAgent.objects.in_workspace(workspace).filter(file=OuterRef("pk"), agent__archived_at=None)
    chosen = links.order_by().values("file").annotate(size=Count("pk")).values("size")
    gravity = Case(
        *(When(state=state, then=Value(place)) for place, state in enumerate(STATES_BY_SEVERITY)),
        output_field=IntegerField(),
    )
    rows = wanted.rows(workspace).select_related("source", "newest", "in_force", "agreed")
    long = [f"{link}__{name}" for link in ("in_force", "agreed") for name in ("head", "findings", "problems")]
    rows = rows.defer("newest__head", *long)
    rows = rows.annotate(chosen_count=Coalesce(Subquery(chosen), 0), gravity=gravity)
    return rows.order_by("gravity", "-changed_at", "path", "pk")


@dataclass(frozen=True)
class InboxGroup:
    """The waiting files of one state and source: how many, how many match, and figures that tell of news."""

    state: str
    slug: str
    label: str
    matching: int
    figures: tuple[Any, ...]


def list_inbox_groups(workspace: Workspace, words: str = "") -> list[InboxGroup]:
    """One question for all that is counted, whatever the inbox's length."""
    matching = Count("pk", filter=Q(path__icontains=words)) if words else Count("pk")
    rows = list_pending_files(workspace).order_by("state", "source__slug")
    counted: Any = rows.values("state", "source__slug", "source__label").annotate(
        matching=matching, **FINGERPRINT_AGGREGATES
    )
    return [
        InboxGroup(
            row["state"],
            row["source__slug"],
            row["source__label"],
            row["matching"],
            tuple(row[name] for name in FINGERPRINT_AGGREGATES),
        )
        for row in counted
    ]


@dataclass
class InboxCounts:
    """How many files wait, by state and by source."""

    states: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    labels: dict[str, str] = field(default_factory=dict)
    total: int = 0

    @property
    def all_states(self) -> int:
        return self.states.total()

    @property
    def all_sources(self) -> int:
        return self.sources.total()


def build_inbox_counts(groups: Iterable[InboxGroup], wanted: InboxFilter) -> InboxCounts:
    """Each choice is counted as if it were made besides the others."""
    tally = InboxCounts()
    for group in groups:
        tally.labels[group.slug] = group.label
        is_state, is_source = wanted.state in {"", group.state}, wanted.source in {"", group.slug}
        tally.states[group.state] += group.matching if is_source else 0
        tally.sources[group.slug] += group.matching if is_state else 0
        tally.total += group.matching if is_state and is_source else 0
    return tally


# --- what the last looks refused -----------------------------------------------------------------------


def list_last_runs(workspace: Workspace | int) -> QuerySet[RefreshRun]:
    """The last finished look at each source in use."""
    runs = RefreshRun.objects.in_workspace(workspace)
    of_source = (
        runs.filter(source=OuterRef("pk"), status__in=FINISHED_STATUSES).order_by("-pk").values("pk")[:1]
    )
    sources = Source.objects.in_workspace(workspace).filter(archived_at=None)
    latest = sources.order_by().annotate(latest=Subquery(of_source)).values("latest")
    return runs.filter(pk__in=latest).select_related("source").order_by("source__label", "source_id")


def list_runs_with_refusals(workspace: Workspace | int) -> QuerySet[Any]:
    """Those that left something out, each with a word for what it was."""
    words = MD5(Cast("refusals", TextField()))
    return list_last_runs(workspace).filter(refused__gt=0).annotate(words=words)


def list_refusal_digests(workspace: Workspace | int) -> list[tuple[int, str]]:
    """By source; the refusals themselves stay where they are."""
    return list(list_runs_with_refusals(workspace).values_list("source_id", "words"))


@dataclass(frozen=True)
class SourceRefusals:
    """What one source's last look left out, but for files that have a page of their own."""

    run: RefreshRun
    shown: list[dict[str, Any]]
    more: int


def list_source_refusals(runs: Iterable[RefreshRun], known: Mapping[int, set[str]]) -> list[SourceRefusals]:
    found = []
    for run in runs:
        files = known.get(run.source_id, set())
        refusals = [one for one in run.refusals if one["path"] not in files]
        if refusals:
            shown = refusals[:MAX_REFUSALS]
            found.append(SourceRefusals(run, shown, len(refusals) - len(shown)))
    return found


def get_inbox_fingerprint(
    groups: Iterable[InboxGroup], refusals: Iterable[tuple[int, str]]
) -> tuple[Any, ...]:
    """What differs whenever the inbox does."""
    return [(group.state, group.slug, group.figures) for group in groups], list(refusals)
