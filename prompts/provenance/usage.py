"""Find where a record or file is used: the versions and labels that contain it now or did before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import Lag

from personas.models import Memory, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.models import LATEST, AgentPrompt, LabelMove, PromptLabel, VersionPart

# A record may be added and removed without limit; only the most recent changes are loaded.
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
    def is_now(self) -> bool:
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
    """Numbers of prompts that contain a record now and that only did before, with the first of them."""

    now: int
    before: int
    usages: Sequence[RecordUsage]


def get_record_usage(
    workspace: Workspace | int, kind: str, key: int, *, limit: int = 8
) -> RecordUsageSummary:
    """Return where a record or file is used: prompts that contain it now first, then past ones."""
    prompts = list_prompts_with_record(workspace, kind, key)
    counts = prompts.aggregate(now=Count("pk", filter=Q(is_now=True)), ever=Count("pk"))
    usages = list_record_usages(workspace, kind, key, list(prompts[:limit])) if counts["ever"] else []
    return RecordUsageSummary(counts["now"], counts["ever"] - counts["now"], usages)


def list_prompts_with_record(workspace: Workspace | int, kind: str, key: int) -> QuerySet[AgentPrompt]:
    """List prompts that contain or contained the record.

    `is_now` is true where the latest version or a labelled version contains it.
    """
    parts = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"))
    labelled = labels.annotate(used_revision=build_revision_subquery(parts, "prompt", "version")).filter(
        used_revision__isnull=False
    )
    rows = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=parts.values("prompt"))
    rows = rows.annotate(used_revision=build_revision_subquery(parts, "pk", "latest")).annotate(
        is_now=Q(used_revision__isnull=False) | Q(Exists(labelled))
    )
    return rows.select_related("agent", "channel").order_by("-is_now", "agent__name", "channel__name", "pk")


def build_revision_subquery(parts: QuerySet[VersionPart], prompt: str, version: str) -> Subquery:
    """Select the record's revision in a version: that of the last VersionPart up to the version."""
    # Version ids of one prompt ascend with their numbers, because its row is locked while one is added.
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


def filter_range_ends(parts: QuerySet[VersionPart]) -> QuerySet[VersionPart]:
    """Filter to rows that start or end a version range; a changed revision within a range does neither."""
    before = Window(Lag("revision"), partition_by=F("prompt"), order_by="version_id")
    return parts.annotate(before=before).filter(Q(before__isnull=True) | Q(revision__isnull=True))


def add_current_labels(workspace: Workspace | int, usages: dict[int, RecordUsage]) -> None:
    """Add the labels that point to a version with the record now."""
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
    """Numbers of prompts whose latest version contains a memory (`now`) and that could (`total`)."""

    now: int
    total: int


@dataclass(frozen=True)
class MemoryUsageSummary:
    """Usage of many memories; `total` is the number of prompts that a shared memory reaches."""

    by_memory: dict[int, MemoryUsage]
    total: int


def get_memory_usage(workspace: Workspace | int, memories: Sequence[Memory]) -> MemoryUsageSummary:
    """Return the usage of these memories, with two queries for any number."""
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
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True, latest__layout__in=MEMORY_LAYOUTS)
    return dict(rows.order_by().values_list("agent_id").annotate(count=Count("pk")))


def count_prompts_with_memory(workspace: Workspace | int, ids: Iterable[int]) -> dict[int, int]:
    """Count per memory the live prompts whose last VersionPart for it has a revision."""
    parts = VersionPart.objects.in_workspace(workspace).filter(kind="memory")
    later = parts.filter(
        object_id=OuterRef("object_id"), prompt=OuterRef("prompt"), version__gt=OuterRef("version")
    )
    rows = parts.filter(object_id__in=list(ids), revision__isnull=False, prompt__is_live=True)
    current = rows.filter(~Exists(later))
    return dict(current.order_by().values_list("object_id").annotate(count=Count("pk")))
