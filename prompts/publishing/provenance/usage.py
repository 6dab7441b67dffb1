"""Find where a record or file is used: the versions and labels that contain it now or did before."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Window
from django.db.models.functions import Lag

from personas.models import Memory, Record, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.models import LATEST, PRODUCTION, AgentPrompt, LabelMove, PromptLabel, VersionPart

# Maximum number of additions and removals of a record to load, newest first. There is no limit to how often
# a record is added to prompts and removed again.
MAX_RANGE_ENDS = 2_000


@dataclass(frozen=True)
class VersionRange:
    """Consecutive versions that contain a record; `last` is None if the range reaches the latest version."""

    first: int
    last: int | None

    def contains(self, number: int) -> bool:
        return self.first <= number and (self.last is None or number <= self.last)


@dataclass
class RecordUsage:
    """A prompt that contains or contained a record, with the version ranges and labels."""

    prompt: AgentPrompt
    ranges: list[VersionRange] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    past_labels: list[str] = field(default_factory=list)

    @property
    def is_current(self) -> bool:
        return bool(self.labels)

    @property
    def last(self) -> int:
        """The newest version that contains the record."""
        return (self.ranges[-1].last if self.ranges else None) or self.prompt.last_number

    def add_change(self, number: int, *, is_included: bool) -> None:
        """Add the next version (in ascending order) at which the record was added or removed."""
        if is_included:
            self.ranges.append(VersionRange(number, None))
        elif self.ranges:
            self.ranges[-1] = VersionRange(self.ranges[-1].first, number - 1)

    def contains(self, number: int) -> bool:
        return any(range_.contains(number) for range_ in self.ranges)


@dataclass(frozen=True)
class RecordUsageSummary:
    """How many prompts contain a record now (`now`) or did only before (`before`).

    `usages` has the details of the first few of these prompts.
    """

    now: int
    before: int
    usages: Sequence[RecordUsage]


def get_record_usage(
    workspace: Workspace | int, kind: str, key: int, *, limit: int = 8
) -> RecordUsageSummary:
    """Return where a record or file is used: prompts that contain it now first, then past ones."""
    prompts = list_prompts_with_record(workspace, kind, key)
    counts = prompts.aggregate(now=Count("pk", filter=Q(is_current=True)), ever=Count("pk"))
    usages = list_record_usages(workspace, kind, key, list(prompts[:limit])) if counts["ever"] else []
    return RecordUsageSummary(counts["now"], counts["ever"] - counts["now"], usages)


def list_prompts_with_record(workspace: Workspace | int, kind: str, key: int) -> QuerySet[AgentPrompt]:
    """List prompts that contain or contained the record.

    `is_current` is true where the latest version or a labelled version contains it.
    """
    parts = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"))
    labelled = labels.annotate(used_revision=build_revision_subquery(parts, "prompt", "version")).filter(
        used_revision__isnull=False
    )
    rows = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=parts.values("prompt"))
    rows = rows.annotate(used_revision=build_revision_subquery(parts, "pk", "latest")).annotate(
        is_current=Q(used_revision__isnull=False) | Q(Exists(labelled))
    )
    return rows.select_related("agent", "channel").order_by(
        "-is_current", "agent__name", "channel__name", "pk"
    )


def build_revision_subquery(parts: QuerySet[VersionPart], prompt: str, version: str) -> Subquery:
    """Select the record's revision in a version; NULL if the version does not contain the record.

    A VersionPart row is written only when a part changes, so the last row up to the version applies.
    `prompt` and `version` name columns of the outer query.
    """
    # Comparing ids is enough: the prompt row is locked while a version is added, so ids ascend with numbers.
    upto = parts.filter(prompt=OuterRef(prompt), version__lte=OuterRef(version))
    return Subquery(upto.order_by("-version_id").values("revision")[:1])


def list_record_usages(
    workspace: Workspace | int, kind: str, key: int, prompts: Sequence[AgentPrompt]
) -> list[RecordUsage]:
    """Return version ranges and labels of the record in these prompts, with three queries in total."""
    usages = {prompt.pk: RecordUsage(prompt) for prompt in prompts}
    rows = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key, prompt__in=usages)
    ends = (
        filter_range_ends(rows)
        .order_by("-version_id")
        .values_list("prompt_id", "version__number", "revision")
    )
    for prompt, number, revision in reversed(ends[:MAX_RANGE_ENDS]):
        usages[prompt].add_change(number, is_included=revision is not None)
    add_current_labels(workspace, usages)
    add_past_labels(workspace, usages)
    return list(usages.values())


def iterate_record_ranges(
    workspace: Workspace | int, kind: str, key: int
) -> Iterator[tuple[int, VersionRange]]:
    """Yield prompt id and version range of every use of the record. Unlike for pages, there is no limit."""
    rows = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key)
    ends = filter_range_ends(rows).order_by("prompt_id", "version_id")
    start: tuple[int, int] | None = None
    for prompt, number, revision in ends.values_list("prompt_id", "version__number", "revision").iterator():
        if start is not None and (revision is None or start[0] != prompt):
            yield start[0], VersionRange(start[1], number - 1 if start[0] == prompt else None)
            start = None
        if revision is not None:
            start = prompt, number
    if start is not None:
        yield start[0], VersionRange(start[1], None)


def filter_range_ends(parts: QuerySet[VersionPart]) -> QuerySet[VersionPart]:
    """Keep only the rows at which the record was added to a prompt or removed from it.

    Rows at which only the revision of the record changed are dropped.
    """
    before = Window(Lag("revision"), partition_by=F("prompt"), order_by="version_id")
    return parts.annotate(before=before).filter(Q(before__isnull=True) | Q(revision__isnull=True))


def add_current_labels(workspace: Workspace | int, usages: dict[int, RecordUsage]) -> None:
    """Add the labels whose current version contains the record."""
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=usages)
    for usage in usages.values():
        if usage.contains(usage.prompt.last_number):
            usage.labels.append(LATEST)
    for prompt, name, number in rows.order_by("name").values_list("prompt_id", "name", "version__number"):
        if usages[prompt].contains(number):
            usages[prompt].labels.append(name)


def add_past_labels(workspace: Workspace | int, usages: dict[int, RecordUsage]) -> None:
    """Add the labels that once pointed to a version with the record and no longer do."""
    conditions = [
        Q(prompt=prompt, version__number__gte=versions.first)
        & (Q() if versions.last is None else Q(version__number__lte=versions.last))
        for prompt, usage in usages.items()
        for versions in usage.ranges
    ]
    if not conditions:
        return
    rows = LabelMove.objects.in_workspace(workspace).filter(reduce(or_, conditions))
    for prompt, label in rows.order_by("label").values_list("prompt_id", "label").distinct():
        if label not in usages[prompt].labels:
            usages[prompt].past_labels.append(label)


# Prompts in other layouts have no place for memories and never contain one.
MEMORY_LAYOUTS = [name for name, layout in LAYOUTS.items() if "memories" in layout.used]


@dataclass(frozen=True)
class MemoryUsage:
    """For one memory: the number of prompts that contain it (`now`) and that could contain it (`total`)."""

    now: int
    total: int


@dataclass(frozen=True)
class MemoryUsageSummary:
    """Usage by memory id; `total` is the number of prompts that could contain a memory of all agents."""

    by_memory: dict[int, MemoryUsage]
    total: int


def get_memory_usage(workspace: Workspace | int, memories: Sequence[Memory]) -> MemoryUsageSummary:
    """Return the usage of these memories, with two queries regardless of their number."""
    live = count_memory_prompts(workspace)
    current = count_prompts_with_memory(workspace, [memory.pk for memory in memories]) if memories else {}
    total = sum(live.values())
    by_memory = {
        memory.pk: MemoryUsage(
            current.get(memory.pk, 0),
            total if memory.agent_id is None else live.get(memory.agent_id, 0),
        )
        for memory in memories
    }
    return MemoryUsageSummary(by_memory, total)


def count_memory_prompts(workspace: Workspace | int) -> dict[int, int]:
    """Count the live prompts of each agent whose layout has a place for memories."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(
        is_active=True, latest__layout__in=MEMORY_LAYOUTS
    )
    return dict(rows.order_by().values_list("agent_id").annotate(count=Count("pk")))


def count_prompts_with_memory(workspace: Workspace | int, ids: Iterable[int]) -> dict[int, int]:
    """Count for each memory the live prompts whose latest version contains it.

    A VersionPart row is written only when a part changes. A prompt contains the memory if its newest row
    has a revision.
    """
    parts = VersionPart.objects.in_workspace(workspace).filter(kind="memory")
    later = parts.filter(
        object_id=OuterRef("object_id"), prompt=OuterRef("prompt"), version__gt=OuterRef("version")
    )
    rows = parts.filter(object_id__in=list(ids), revision__isnull=False, prompt__is_active=True)
    current = rows.filter(~Exists(later))
    return dict(current.order_by().values_list("object_id").annotate(count=Count("pk")))


def list_file_revisions_in_use(workspace: Workspace | int, ids: Collection[int]) -> dict[int, set[int]]:
    """Return the revision numbers of these context files that live prompts contain, by file id.

    A prompt contains what its latest version or its production version contains.
    """
    parts = VersionPart.objects.in_workspace(workspace).filter(kind="context_file", object_id__in=list(ids))
    labels = PromptLabel.objects.in_workspace(workspace).filter(name=PRODUCTION, prompt=OuterRef("prompt"))
    in_latest = list_parts_of_version(parts, F("prompt__latest_id"))
    in_production = list_parts_of_version(parts, Subquery(labels.values("version_id")[:1]))
    revisions: dict[int, set[int]] = {}
    for file_id, revision in in_latest.union(in_production):
        revisions.setdefault(file_id, set()).add(revision)
    return revisions


def list_parts_of_version(parts: QuerySet[VersionPart], pointer: F | Subquery) -> "QuerySet[Any, Any]":
    """Return object id and revision of the parts that live prompts contain in the version `pointer`.

    A VersionPart row is written only when a part changes, so the last row up to the version applies.
    """
    later = parts.filter(
        object_id=OuterRef("object_id"),
        prompt=OuterRef("prompt"),
        version_id__gt=OuterRef("version_id"),
        version_id__lte=OuterRef("pointer"),
    )
    upto = parts.annotate(pointer=pointer).filter(version_id__lte=F("pointer"), prompt__is_active=True)
    rows: QuerySet[Any, Any] = upto.filter(~Exists(later), revision__isnull=False).order_by()
    return rows.values_list("object_id", "revision")


def get_usage_fingerprint(workspace: Workspace | int) -> tuple[int | None, ...]:
    """Return sums that change when a version is added or a label is moved, with one query."""
    prompts = AgentPrompt.objects.in_workspace(workspace).order_by()
    sums = prompts.aggregate(
        versions=Sum("latest_id"), moves=Sum("last_move"), live=Count("pk", filter=Q(is_active=True))
    )
    return tuple(sums.values())


# By record kind: the names of the layout inputs that records of this kind fill.
INPUTS_BY_KIND = {
    "identity": ("identity.name", "identity.text", "identity.vibe", "identity.creature", "identity.emoji"),
    "soul": ("soul",),
    "user_profile": ("user.name", "user.notes", "user.location", "user.timezone"),
    "memory": ("memories",),
    "responsibility": ("responsibilities",),
    "skill": ("skills",),
    "tool": ("tools", "planning_tools"),
}


@dataclass(frozen=True)
class UnusedLayout:
    """A layout without a place for a kind of record, and the number of prompts that therefore lack it."""

    name: str
    prompts: int


def is_used_by_layout(kind: str, layout: str) -> bool:
    """Whether prompts in this layout can contain records of this kind."""
    names = INPUTS_BY_KIND.get(kind)
    if names is None or layout not in LAYOUTS:
        return True
    return not LAYOUTS[layout].used.isdisjoint(names)


def list_unused_layouts(workspace: Workspace | int, record: Record) -> list[UnusedLayout]:
    """List the layouts of agents that use the record, but whose prompts cannot contain it."""
    if record.kind not in INPUTS_BY_KIND or not record.pk:
        return []
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(
        agent__in=record.agent_ids(), is_active=True, latest__isnull=False
    )
    counts = Counter(prompts.values_list("latest__layout", flat=True))
    return [
        UnusedLayout(name, count)
        for name, count in sorted(counts.items())
        if not is_used_by_layout(record.kind, name)
    ]


def find_production_revisions(
    workspace: Workspace | int, kind: str, key: int, usages: Sequence[RecordUsage]
) -> dict[int, int]:
    """Return the revision of the record that production contains, by prompt id."""
    parts = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key)
    labels = PromptLabel.objects.in_workspace(workspace).filter(
        name=PRODUCTION, prompt__in=[usage.prompt.pk for usage in usages]
    )
    rows = labels.annotate(used_revision=build_revision_subquery(parts, "prompt", "version"))
    return {
        prompt: revision
        for prompt, revision in rows.values_list("prompt_id", "used_revision")
        if revision is not None
    }
