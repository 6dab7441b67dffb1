"""What files mean for an agent's own page: those that are withheld, and those that say who it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from personas.models import Agent
from skills.agent_context.effective import EffectiveFile, MatchedFiles
from skills.models import ContextFile, FileState, Reach
from skills.sources.readers import SourceReader, get_source_reader

UNUSABLE_STATES = (FileState.QUARANTINED, FileState.INVALID)
LOADED_FIELDS = ("workspace", "source", "path", "file_kind", "state", "reach", "is_there", "in_force")


@dataclass(frozen=True)
class AgentFiles:
    """What something speaks against, and the IDENTITY.md, SOUL.md and USER.md in force."""

    troubles: Sequence[ContextFile]
    persona: Sequence[EffectiveFile]


def get_agent_files(agent: Agent) -> AgentFiles:
    """As a rule two queries, with troubles three; no contents are loaded."""
    outlook = get_source_reader(agent)
    files = list_candidate_files(agent, outlook)
    named = list_matched_files(outlook, files) if outlook else []
    by_rule = {file.pk for _, file in named}
    grave = [
        file.pk
        for file in files
        if file.state in UNUSABLE_STATES and (is_assigned(file) or file.pk in by_rule)
    ]
    persona = [EffectiveFile(kind, file) for kind, file in named if kind == "persona" and file.in_force_id]
    return AgentFiles(list_files_with_findings(agent, grave) if grave else [], persona)


def list_candidate_files(agent: Agent, outlook: SourceReader | None) -> list[ContextFile]:
    """The files of the agent's source, and the skills that were handed to it."""
    handed = Q(file_kind="skill") & (Q(reach=Reach.ALL) | Q(reach=Reach.CHOSEN, agent_links__agent=agent))
    own = Q(source=outlook.source) if outlook else Q(pk=None)
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(is_ignored=False)
    near = rows.filter(own | handed, source__archived_at=None).only(*LOADED_FIELDS)
    return list(near.distinct().order_by("path", "pk"))


def list_matched_files(outlook: SourceReader, files: Sequence[ContextFile]) -> MatchedFiles:
    """Those that the agent's rules name, in their order and each with its kind."""
    here = [file for file in files if file.source_id == outlook.source.pk]
    stored = {file.path: file for file in here if file.is_there or file.in_force_id}
    return [(kind, stored[path]) for kind, path in outlook.paths(stored)]


def is_assigned(file: ContextFile) -> bool:
    return file.file_kind == "skill" and file.reach != Reach.FOUND


def list_files_with_findings(agent: Agent, keys: Sequence[int]) -> list[ContextFile]:
    """With what was found in them."""
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(pk__in=keys)
    return list(rows.select_related("newest", "in_force").order_by("path", "pk"))
