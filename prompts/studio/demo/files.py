"""Write the demo's context files to disk and create their history: approved first, then some are changed."""

from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.models import Agent, Workspace
from skills.agent_context.services import choose_context
from skills.files.services import approve_file, ignore_file
from skills.models import AllowedFolder, Approval, ContextFile, Source, is_folder_allowed
from skills.refresh.runs import claim_run, request_refresh
from skills.refresh.services import refresh_source
from skills.sources.allowed_folders import allow_folder

DEMO_DIR = Path(__file__).parent
DEMO_FILES_DIR, LATER_FILES_PATH = DEMO_DIR / "tree", DEMO_DIR / "cast" / "later.yaml"
DEMO_SOURCE_NAME = "Larkfell files"
# The demo user Wen ignores this file in the inbox: its first line says that it is a draft.
IGNORED_FILE_PATH = ".moltis/SOUL.md"

FileContents = dict[str, bytes]


def read_first_files() -> FileContents:
    paths = [path for path in sorted(DEMO_FILES_DIR.rglob("*")) if path.is_file()]
    return {path.relative_to(DEMO_FILES_DIR).as_posix(): path.read_bytes() for path in paths}


def read_later_files() -> FileContents:
    entries = yaml.load(LATER_FILES_PATH.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {entry["path"]: entry["text"].encode() for entry in entries}


def load_demo_files(workspace: Workspace, agents: list[dict[str, Any]], *, by: Actor, wen: Actor) -> None:
    """Load the demo files, unless the configured source roots do not allow the demo folder."""
    folder = settings.DEMO_SOURCES / workspace.slug
    if not is_folder_allowed(str(folder)):
        return
    if Source.objects.in_workspace(workspace).filter(name=DEMO_SOURCE_NAME).exists():
        write_missing_files(folder, read_first_files() | read_later_files())
    else:
        create_file_history(workspace, folder, agents, by=by, wen=wen)


def create_file_history(
    workspace: Workspace, folder: Path, agents: list[dict[str, Any]], *, by: Actor, wen: Actor
) -> None:
    """Create the history through the same services as members and workers, so that it is consistent."""
    first, later = read_first_files(), read_later_files()
    remove_later_files(folder, later)
    write_missing_files(folder, first)
    source = register_demo_source(workspace, folder, by=by)
    choose_contexts(source, agents, by=by)
    refresh_demo_source(source, by=by)
    approve_demo_files(source, by=by, wen=wen)
    apply_later_files(folder, first, later)
    refresh_demo_source(source, by=by)


# --- on disk: files written by users are never overwritten ---------------------------------------------


def write_missing_files(folder: Path, files: FileContents) -> None:
    for name, data in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def remove_later_files(folder: Path, later: FileContents) -> None:
    """Delete the files that an earlier load wrote from later.yaml, unless they were edited since."""
    for name, data in later.items():
        if has_content(folder / name, data):
            (folder / name).unlink()


def apply_later_files(folder: Path, first: FileContents, later: FileContents) -> None:
    for name in later:
        if name in first and has_content(folder / name, first[name]):
            (folder / name).unlink()
    write_missing_files(folder, later)


def has_content(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


# --- as records ----------------------------------------------------------------------------------------


def register_demo_source(workspace: Workspace, folder: Path, *, by: Actor) -> Source:
    allowed_folders = AllowedFolder.objects.in_workspace(workspace).filter(path=str(folder))
    allowed_folder = allowed_folders.first() or allow_folder(
        workspace, str(folder), note="The demo's own files.", by=by
    )
    # With automatic approval, the demo can show files that are live before anyone has reviewed them.
    values = {"name": DEMO_SOURCE_NAME, "allowed_folder": allowed_folder, "approval": Approval.AUTOMATIC}
    return create_named_record(Source, workspace, values, by=by)


def choose_contexts(source: Source, agents: list[dict[str, Any]], *, by: Actor) -> None:
    """Choose the context of agents that name a harness; other sub-agents inherit from their parents."""
    rows = {row.slug: row for row in Agent.objects.in_workspace(source.workspace_id)}
    for entry in agents:
        if harness := entry.get("harness"):
            agent = rows[entry["slug"]]
            folder = agent.working_directory
            choose_context(agent, source, harness, working_directory=folder, expected=agent.revision, by=by)


def refresh_demo_source(source: Source, *, by: Actor) -> None:
    """Refresh the source synchronously, without a worker."""
    requested = request_refresh(source, cause="person", by=by)
    if run := claim_run(source.workspace_id, requested.pk):
        refresh_source(run)


def approve_demo_files(source: Source, *, by: Actor, wen: Actor) -> None:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    for file in rows.select_related("source", "latest").order_by("path"):
        if file.path == IGNORED_FILE_PATH:
            ignore_file(file, by=wen)
        elif file.latest and file.status == "new":
            approve_file(file, digest=file.latest.digest, by=by)
