"""Recompute statuses and effective revisions of files, and notify the agents that read them."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from personas.actors import SYSTEM_ACTOR, Actor
from personas.events.services import build_event, record_events
from personas.models import Agent, Event
from personas.signals import agent_changed
from skills.files.statuses import WITHHELD_STATUSES, FilePolicy, get_effective_revision, get_file_status
from skills.models import AssignedTo, ContextFile, FileAgent, FileStatus, RefreshRun, Source
from skills.sources.readers import get_readers_by_agent

# When a file enters one of these statuses and is not resolved, `context_file.waiting` is recorded.
WAITING_STATUSES = frozenset({FileStatus.NEW, FileStatus.CHANGED, FileStatus.QUARANTINED, FileStatus.MISSING})
SAVED_COLUMNS = [
    *(
        "file_kind",
        "status",
        "problem",
        "exists",
        "is_ignored",
        "latest",
        "approved",
        "active",
        "is_resolved",
    ),
    *("size", "mtime_ns", "ctime_ns", "inode", "name", "trusted_digest", "rejected_digest", "changed_at"),
]


def apply_statuses(files: Collection[ContextFile], policy: FilePolicy, *, now: datetime) -> list[ContextFile]:
    """Recompute and save the status and the active revision of each file.

    Return the files whose text in prompts changes, and those that become or cease to be withheld: prompts
    are served with a warning for each withheld file.
    """
    changed, events = [], []
    for file in files:
        is_changed, used = False, get_effective_revision(file, policy)
        status = get_file_status(file, policy)
        if (used.digest if used else "") != (file.active.digest if file.active else ""):
            changed.append(file)
            file.changed_at = now
            is_changed = True
        elif status != file.status and not WITHHELD_STATUSES.isdisjoint((status, file.status)):
            changed.append(file)
        is_waiting = status != file.status and status in WAITING_STATUSES and not file.is_resolved
        file.active, file.status = used, status
        events += [build_file_event(file, "context_file.changed")] if is_changed else []
        events += [build_file_event(file, "context_file.waiting")] if is_waiting else []
        if status == FileStatus.CURRENT:
            # This includes a file whose approved content came back after other content.
            file.is_resolved = True
        # One UPDATE per row is faster than bulk_update, because Django takes long to build that statement.
        file.save(update_fields=SAVED_COLUMNS)
    record_events(events)
    return changed


def build_file_event(file: ContextFile, name: str) -> Event:
    used = file.latest if name == "context_file.waiting" else file.active
    data = {
        "file_id": file.pk,
        "source_id": file.source_id,
        "kind": file.file_kind,
        "status": str(file.status),
        "digest": used.digest if used else None,
    }
    return build_event(file.workspace_id, name, data)


def notify_readers(
    source: Source,
    changed: Collection[ContextFile],
    *,
    cause: RefreshRun | None = None,
    by: Actor = SYSTEM_ACTOR,
) -> list[int]:
    """Send `agent_changed` for all agents that get one of the changed files. Return the agents' ids."""
    agent_ids = list_reader_ids(source, changed) if changed else []
    if agent_ids:
        agent_changed.send(
            sender=Source, workspace_id=source.workspace_id, agent_ids=agent_ids, cause=cause, by=by
        )
    return agent_ids


def list_reader_ids(source: Source, files: Iterable[ContextFile]) -> list[int]:
    """Return the ids of the active agents that get any of the files, by discovery rules or by assignment."""
    files = list(files)
    changed = {
        file.path for file in files if file.file_kind != "skill" or file.assigned_to == AssignedTo.WHERE_FOUND
    }
    readers = [
        reader
        for reader in get_readers_by_agent(source.workspace_id).values()
        if source.pk in reader.source_ids
    ]
    stored = get_stored_paths(source, {pk for reader in readers for pk in reader.source_ids})
    matched_ids = {
        reader.agent.pk
        for reader in readers
        if any(one.source == source.pk and one.path in changed for one in reader.match_files(stored))
    }
    agents = Agent.objects.in_workspace(source.workspace_id).filter(archived_at=None)
    live_ids = set(agents.values_list("pk", flat=True))
    if any(file.assigned_to == AssignedTo.ALL for file in files if file.file_kind == "skill"):
        return sorted(live_ids)
    links = FileAgent.objects.in_workspace(source.workspace_id).filter(file__in=files)
    return sorted(live_ids & (matched_ids | set(links.values_list("agent_id", flat=True))))


def get_stored_paths(source: Source, source_ids: Iterable[int]) -> dict[int, set[str]]:
    """Return the paths of all stored files of these sources, by source id."""
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source__in=[source.pk, *source_ids])
    stored: dict[int, set[str]] = defaultdict(set)
    for source_id, path in rows.values_list("source_id", "path"):
        stored[source_id].add(path)
    return stored
