"""After anything happened to files: their states, the revisions in force, and who must hear of it."""

from collections.abc import Collection, Iterable
from datetime import datetime

from personas.models import Agent
from personas.signals import agent_changed
from skills.files.states import FilePolicy, get_effective_revision, get_file_state
from skills.models import ContextFile, FileAgent, Reach, RefreshRun, Source
from skills.sources.readers import get_readers_by_agent

SAVED_COLUMNS = [
    *(
        "file_kind",
        "state",
        "problem",
        "is_there",
        "is_ignored",
        "newest",
        "agreed",
        "in_force",
        "is_settled",
    ),
    *("size", "mtime_ns", "inode", "name", "trusted_digest", "changed_at"),
]


def apply_states(files: Collection[ContextFile], house: FilePolicy, *, now: datetime) -> list[ContextFile]:
    """Work out state and revision in force anew and write them; gives back those whose words changed."""
    moved = []
    for file in files:
        used = get_effective_revision(file, house)
        if (used.digest if used else "") != (file.in_force.digest if file.in_force else ""):
            moved.append(file)
            file.changed_at = now
        file.in_force = used
        file.state = get_file_state(file, house)
        # Row by row: Django's bulk update spends more on its one long statement than these take together.
        file.save(update_fields=SAVED_COLUMNS)
    return moved


def notify_readers(
    source: Source, moved: Collection[ContextFile], *, cause: RefreshRun | None = None
) -> list[int]:
    """Ring the one bell for every agent whose context holds one of these files."""
    agent_ids = list_reader_ids(source, moved) if moved else []
    if agent_ids:
        agent_changed.send(sender=Source, workspace_id=source.workspace_id, agent_ids=agent_ids, cause=cause)
    return agent_ids


def list_reader_ids(source: Source, files: Iterable[ContextFile]) -> list[int]:
    """The live agents that are given any of the files, by their rules or by choice."""
    files = list(files)
    changed = {file.path for file in files if file.file_kind != "skill" or file.reach == Reach.FOUND}
    everything = set(
        ContextFile.objects.in_workspace(source.workspace_id)
        .filter(source=source)
        .values_list("path", flat=True)
    )
    outlooks = [
        one for one in get_readers_by_agent(source.workspace_id).values() if one.source.pk == source.pk
    ]
    found = {one.agent.pk for one in outlooks if has_changed_path(one.paths(everything), changed)}
    agents = Agent.objects.in_workspace(source.workspace_id).filter(archived_at=None)
    live = set(agents.values_list("pk", flat=True))
    if any(file.reach == Reach.ALL for file in files if file.file_kind == "skill"):
        return sorted(live)
    links = FileAgent.objects.in_workspace(source.workspace_id).filter(file__in=files)
    return sorted(live & (found | set(links.values_list("agent_id", flat=True))))


def has_changed_path(given: Iterable[tuple[str, str]], changed: set[str]) -> bool:
    return any(path in changed for _, path in given)
