"""How many prompts hold a memory, and how many one could come into."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef

from personas.models import Memory, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.models import AgentPrompt, VersionPart

# Dialects without a place for memories never hold one.
WITH_MEMORIES = [name for name, layout in LAYOUTS.items() if "memories" in layout.used]


@dataclass(frozen=True)
class Reach:
    """A memory among prompts: those whose latest version holds it, and those that have a place for it."""

    now: int
    most: int


@dataclass(frozen=True)
class Reaches:
    """The same for many memories; shared ones come to every prompt."""

    by_memory: dict[int, Reach]
    everyone: int


def reaches_of(workspace: Workspace | int, memories: Sequence[Memory]) -> Reaches:
    """Two queries, however many memories."""
    live = live_prompts(workspace)
    holding = prompts_holding_now(workspace, [memory.pk for memory in memories]) if memories else {}
    everyone = sum(live.values())
    found = {
        memory.pk: Reach(
            holding.get(memory.pk, 0),
            everyone if memory.agent_id is None else live.get(memory.agent_id, 0),
        )
        for memory in memories
    }
    return Reaches(found, everyone)


def live_prompts(workspace: Workspace | int) -> dict[int, int]:
    """How many prompts with a place for memories each agent has."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True, latest__layout__in=WITH_MEMORIES)
    return dict(rows.order_by().values_list("agent_id").annotate(count=Count("pk")))


def prompts_holding_now(workspace: Workspace | int, ids: Iterable[int]) -> dict[int, int]:
    """By memory: the prompts in whose last word on it there is a revision."""
    parts = VersionPart.objects.in_workspace(workspace).filter(kind="memory")
    later = parts.filter(
        object_id=OuterRef("object_id"), prompt=OuterRef("prompt"), version__gt=OuterRef("version")
    )
    rows = parts.filter(object_id__in=list(ids), revision__isnull=False, prompt__is_live=True)
    standing = rows.filter(~Exists(later))
    return dict(standing.order_by().values_list("object_id").annotate(count=Count("pk")))
