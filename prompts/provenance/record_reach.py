"""What reaches bots of a record: layouts without a place for it, and the revision in production."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from personas.models import Record, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel, VersionPart
from prompts.provenance.usage import RecordUsage, build_revision_subquery

# The names of a layout's inputs that each kind of record fills.
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
        agent__in=record.agent_ids(), is_live=True, latest__isnull=False
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
