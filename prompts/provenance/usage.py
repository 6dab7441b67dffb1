"""From a record or file to the versions and labels it is in now and was in before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import Lag

from personas.models import Memory, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.models import LATEST, AgentPrompt, LabelMove, PromptLabel, VersionPart

# How often something came and went is bounded by nobody; the last times say enough.
MAX_RANGE_ENDS = 2_000


@dataclass(frozen=True)
class VersionRange:
    """Versions in a row that hold something; without a last one, up to the latest."""

    first: int
    last: int | None

    def holds(self, number: int) -> bool:
        return self.first <= number and (self.last is None or number <= self.last)


@dataclass
class RecordUsage:
    """One prompt that holds or held a record: in which versions, under which labels."""

    prompt: AgentPrompt
    stays: list[VersionRange] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    past_labels: list[str] = field(default_factory=list)

    @property
    def is_now(self) -> bool:
        return bool(self.labels)

    @property
    def last(self) -> int:
        """The newest version that holds it."""
        return (self.stays[-1].last if self.stays else None) or self.prompt.last_number

    def note(self, number: int, *, is_held: bool) -> None:
        """Take in the next version at which it came or went."""
        if is_held:
            self.stays.append(VersionRange(number, None))
        elif self.stays:
            self.stays[-1] = VersionRange(self.stays[-1].first, number - 1)

    def holds(self, number: int) -> bool:
        return any(stay.holds(number) for stay in self.stays)


@dataclass(frozen=True)
class RecordUsageSummary:
    """How many prompts hold something now or only held it, and the first of them."""

    now: int
    before: int
    shown: Sequence[RecordUsage]


def get_record_usage(
    workspace: Workspace | int, kind: str, key: int, *, limit: int = 8
) -> RecordUsageSummary:
    """Where a record or file is: prompts that a label leads to first, then those of the past."""
    prompts = list_prompts_with_record(workspace, kind, key)
    counts = prompts.aggregate(now=Count("pk", filter=Q(is_now=True)), ever=Count("pk"))
    shown = list_record_usages(workspace, kind, key, list(prompts[:limit])) if counts["ever"] else []
    return RecordUsageSummary(counts["now"], counts["ever"] - counts["now"], shown)


def list_prompts_with_record(workspace: Workspace | int, kind: str, key: int) -> QuerySet[AgentPrompt]:
    """Every prompt that holds or held it; `is_now` where the latest version or a label does."""
    parts = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"))
    labelled = labels.annotate(held=build_revision_subquery(parts, "prompt", "version")).filter(
        held__isnull=False
    )
    rows = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=parts.values("prompt"))
    rows = rows.annotate(held=build_revision_subquery(parts, "pk", "latest")).annotate(
        is_now=Q(held__isnull=False) | Q(Exists(labelled))
    )
    return rows.select_related("agent", "channel").order_by("-is_now", "agent__name", "channel__name", "pk")


def build_revision_subquery(parts: QuerySet[VersionPart], prompt: str, version: str) -> Subquery:
    """The revision that stands at a version: what the last change up to it says."""
    # Versions of one prompt get their ids in the order of their numbers, for its row is locked meanwhile.
    upto = parts.filter(prompt=OuterRef(prompt), version__lte=OuterRef(version))
    return Subquery(upto.order_by("-version_id").values("revision")[:1])


def list_record_usages(
    workspace: Workspace | int, kind: str, key: int, prompts: Sequence[AgentPrompt]
) -> list[RecordUsage]:
    """These prompts with the stretches of versions and the labels; three queries for all."""
    found = {prompt.pk: RecordUsage(prompt) for prompt in prompts}
    rows = VersionPart.objects.in_workspace(workspace).filter(kind=kind, object_id=key, prompt__in=found)
    ends = (
        filter_range_ends(rows)
        .order_by("-version_id")
        .values_list("prompt_id", "version__number", "revision")
    )
    for prompt, number, revision in reversed(ends[:MAX_RANGE_ENDS]):
        found[prompt].note(number, is_held=revision is not None)
    add_current_labels(workspace, found)
    add_past_labels(workspace, found)
    return list(found.values())


def filter_range_ends(parts: QuerySet[VersionPart]) -> QuerySet[VersionPart]:
    """Where stretches begin and end; a mere other revision in between does neither."""
    before = Window(Lag("revision"), partition_by=F("prompt"), order_by="version_id")
    return parts.annotate(before=before).filter(Q(before__isnull=True) | Q(revision__isnull=True))


def add_current_labels(workspace: Workspace | int, found: dict[int, RecordUsage]) -> None:
    """What leads to a version that holds it, now."""
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=found)
    for holding in found.values():
        if holding.holds(holding.prompt.last_number):
            holding.labels.append(LATEST)
    for prompt, name, number in rows.order_by("name").values_list("prompt_id", "name", "version__number"):
        if found[prompt].holds(number):
            found[prompt].labels.append(name)


def add_past_labels(workspace: Workspace | int, found: dict[int, RecordUsage]) -> None:
    """What has led there and does no longer."""
    stretches = [
        Q(prompt=prompt, version__number__gte=stay.first)
        & (Q() if stay.last is None else Q(version__number__lte=stay.last))
        for prompt, holding in found.items()
        for stay in holding.stays
    ]
    if not stretches:
        return
    rows = LabelMove.objects.in_workspace(workspace).filter(reduce(or_, stretches))
    for prompt, label in rows.order_by("label").values_list("prompt_id", "label").distinct():
        if label not in found[prompt].labels:
            found[prompt].past_labels.append(label)


# Dialects without a place for memories never hold one.
MEMORY_LAYOUTS = [name for name, layout in LAYOUTS.items() if "memories" in layout.used]


@dataclass(frozen=True)
class MemoryUsage:
    """A memory among prompts: those whose latest version holds it, and those that have a place for it."""

    now: int
    most: int


@dataclass(frozen=True)
class MemoryUsageSummary:
    """The same for many memories; shared ones come to every prompt."""

    by_memory: dict[int, MemoryUsage]
    everyone: int


def get_memory_usage(workspace: Workspace | int, memories: Sequence[Memory]) -> MemoryUsageSummary:
    """Two queries, however many memories."""
    live = count_memory_prompts(workspace)
    holding = count_prompts_with_memory(workspace, [memory.pk for memory in memories]) if memories else {}
    everyone = sum(live.values())
    found = {
        memory.pk: MemoryUsage(
            holding.get(memory.pk, 0),
            everyone if memory.agent_id is None else live.get(memory.agent_id, 0),
        )
        for memory in memories
    }
    return MemoryUsageSummary(found, everyone)


def count_memory_prompts(workspace: Workspace | int) -> dict[int, int]:
    """How many prompts with a place for memories each agent has."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True, latest__layout__in=MEMORY_LAYOUTS)
    return dict(rows.order_by().values_list("agent_id").annotate(count=Count("pk")))


def count_prompts_with_memory(workspace: Workspace | int, ids: Iterable[int]) -> dict[int, int]:
    """By memory: the prompts in whose last word on it there is a revision."""
    parts = VersionPart.objects.in_workspace(workspace).filter(kind="memory")
    later = parts.filter(
        object_id=OuterRef("object_id"), prompt=OuterRef("prompt"), version__gt=OuterRef("version")
    )
    rows = parts.filter(object_id__in=list(ids), revision__isnull=False, prompt__is_live=True)
    standing = rows.filter(~Exists(later))
    return dict(standing.order_by().values_list("object_id").annotate(count=Count("pk")))
