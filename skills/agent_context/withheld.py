"""Files shown on an agent's own page: unusable files, and the persona files that its prompts use."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from personas.models import Agent
from skills.agent_context.effective import EffectiveFile, MatchedFiles
from skills.models import AssignedTo, ContextFile, FileStatus
from skills.sources.readers import ContextReader, get_context_reader

UNUSABLE_STATUSES = (FileStatus.QUARANTINED, FileStatus.INVALID)
LOADED_FIELDS = ("workspace", "source", "path", "file_kind", "status", "assigned_to", "exists", "active")


@dataclass(frozen=True)
class AgentFiles:
    """Files of one agent: invalid or quarantined files, and persona files that its prompts use.

    Persona files are IDENTITY.md, SOUL.md and USER.md.
    """

    unusable_files: Sequence[ContextFile]
    persona_files: Sequence[EffectiveFile]


def get_agent_files(agent: Agent) -> AgentFiles:
    """Load an agent's unusable and persona files, without their contents.

    If there are unusable files, one more query loads their findings.
    """
    reader = get_context_reader(agent)
    files = list_candidate_files(agent, reader)
    matches = list_matched_files(reader, files) if reader else []
    matched_ids = {file.pk for _, file in matches}
    unusable_ids = [
        file.pk
        for file in files
        if file.status in UNUSABLE_STATUSES and (is_assigned(file) or file.pk in matched_ids)
    ]
    persona = [EffectiveFile(kind, file) for kind, file in matches if kind == "persona" and file.active_id]
    return AgentFiles(list_files_with_findings(agent, unusable_ids) if unusable_ids else [], persona)


def list_candidate_files(agent: Agent, reader: ContextReader | None) -> list[ContextFile]:
    """Return the files of the agent's sources, and the skill files assigned to it."""
    assigned = Q(file_kind="skill") & (
        Q(assigned_to=AssignedTo.ALL) | Q(assigned_to=AssignedTo.SELECTED, agent_links__agent=agent)
    )
    in_own_source = Q(source__in=reader.source_ids) if reader else Q(pk=None)
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(is_ignored=False)
    candidates = rows.filter(in_own_source | assigned, source__archived_at=None).only(*LOADED_FIELDS)
    return list(candidates.distinct().order_by("path", "pk"))


def list_matched_files(reader: ContextReader, files: Sequence[ContextFile]) -> MatchedFiles:
    """Return the files that the agent's rules match, in rule order, each with its kind."""
    stored: dict[int, dict[str, ContextFile]] = {pk: {} for pk in reader.source_ids}
    for file in files:
        if file.source_id in stored and (file.exists or file.active_id):
            stored[file.source_id][file.path] = file
    return [(kind, stored[source][path]) for kind, source, path in reader.match_files(stored)]


def is_assigned(file: ContextFile) -> bool:
    return file.file_kind == "skill" and file.assigned_to != AssignedTo.WHERE_FOUND


def list_files_with_findings(agent: Agent, ids: Sequence[int]) -> list[ContextFile]:
    """Load the files with these ids, with their revisions, because findings are stored on revisions."""
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(pk__in=ids)
    return list(rows.select_related("latest", "active").order_by("path", "pk"))
