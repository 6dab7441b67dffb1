"""What files mean for an agent's own page: those that are withheld, and those that say who it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from personas.models import Agent
from skills.agent_context.effective import FileInUse, Found
from skills.models import ContextFile, FileState, Reach
from skills.sources.readers import Outlook, outlook_of

GRAVE = (FileState.QUARANTINED, FileState.INVALID)
LIGHT = ("workspace", "source", "path", "file_kind", "state", "reach", "is_there", "in_force")


@dataclass(frozen=True)
class AgentFiles:
    """What something speaks against, and the IDENTITY.md, SOUL.md and USER.md in force."""

    troubles: Sequence[ContextFile]
    persona: Sequence[FileInUse]


def files_about(agent: Agent) -> AgentFiles:
    """As a rule two queries, with troubles three; no contents are loaded."""
    outlook = outlook_of(agent)
    files = files_near(agent, outlook)
    named = named_by(outlook, files) if outlook else []
    by_rule = {file.pk for _, file in named}
    grave = [file.pk for file in files if file.state in GRAVE and (is_handed(file) or file.pk in by_rule)]
    persona = [FileInUse(kind, file) for kind, file in named if kind == "persona" and file.in_force_id]
    return AgentFiles(whole(agent, grave) if grave else [], persona)


def files_near(agent: Agent, outlook: Outlook | None) -> list[ContextFile]:
    """The files of the agent's source, and the skills that were handed to it."""
    handed = Q(file_kind="skill") & (Q(reach=Reach.ALL) | Q(reach=Reach.CHOSEN, agent_links__agent=agent))
    own = Q(source=outlook.source) if outlook else Q(pk=None)
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(is_ignored=False)
    near = rows.filter(own | handed, source__archived_at=None).only(*LIGHT)
    return list(near.distinct().order_by("path", "pk"))


def named_by(outlook: Outlook, files: Sequence[ContextFile]) -> Found:
    """Those that the agent's rules name, in their order and each with its kind."""
    here = [file for file in files if file.source_id == outlook.source.pk]
    stored = {file.path: file for file in here if file.is_there or file.in_force_id}
    return [(kind, stored[path]) for kind, path in outlook.paths(stored)]


def is_handed(file: ContextFile) -> bool:
    return file.file_kind == "skill" and file.reach != Reach.FOUND


def whole(agent: Agent, keys: Sequence[int]) -> list[ContextFile]:
    """With what was found in them."""
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(pk__in=keys)
    return list(rows.select_related("newest", "in_force").order_by("path", "pk"))
