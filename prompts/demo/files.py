"""Lays the demo's files out on disk and tells their story: all agreed to at first, then some changed."""

from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from personas.actors import Actor
from personas.agents.services import create_named
from personas.models import Agent, Workspace
from skills.agent_context.services import choose_context
from skills.files.services import adopt_file, ignore_file
from skills.models import ContextFile, Source, SourceGrant, is_allowed
from skills.refresh.runs import claim_run, request_refresh
from skills.refresh.services import refresh_source
from skills.sources.grants import grant_folder

HERE = Path(__file__).parent
TREE, LATER = HERE / "tree", HERE / "cast" / "later.yaml"
LABEL = "Larkfell files"
# Wen says so in its first line.
DRAFT = ".moltis/SOUL.md"

Files = dict[str, bytes]


def first_files() -> Files:
    paths = [path for path in sorted(TREE.rglob("*")) if path.is_file()]
    return {path.relative_to(TREE).as_posix(): path.read_bytes() for path in paths}


def later_files() -> Files:
    entries = yaml.load(LATER.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {entry["path"]: entry["text"].encode() for entry in entries}


def bring_files(workspace: Workspace, agents: list[dict[str, Any]], *, by: Actor, wen: Actor) -> None:
    """Left out where operators have named other roots, and so not allowed this one."""
    folder = settings.DEMO_SOURCES / workspace.slug
    if not is_allowed(str(folder)):
        return
    if Source.objects.in_workspace(workspace).filter(label=LABEL).exists():
        put_missing(folder, first_files() | later_files())
    else:
        tell_story(workspace, folder, agents, by=by, wen=wen)


def tell_story(
    workspace: Workspace, folder: Path, agents: list[dict[str, Any]], *, by: Actor, wen: Actor
) -> None:
    """Through the same verbs as people and workers use, so that the history is true."""
    first, later = first_files(), later_files()
    turn_back(folder, later)
    put_missing(folder, first)
    source = register(workspace, folder, by=by)
    choose_contexts(source, agents, by=by)
    look(source, by=by)
    agree(source, by=by, wen=wen)
    move_on(folder, first, later)
    look(source, by=by)


# --- on disk: never over what a person wrote -----------------------------------------------------------


def put_missing(folder: Path, files: Files) -> None:
    for name, data in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def turn_back(folder: Path, later: Files) -> None:
    """Begin again where an earlier demo left off; only what is word for word ours is touched."""
    for name, data in later.items():
        if says(folder / name, data):
            (folder / name).unlink()


def move_on(folder: Path, first: Files, later: Files) -> None:
    for name in later:
        if name in first and says(folder / name, first[name]):
            (folder / name).unlink()
    put_missing(folder, later)


def says(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


# --- as records ----------------------------------------------------------------------------------------


def register(workspace: Workspace, folder: Path, *, by: Actor) -> Source:
    grants = SourceGrant.objects.in_workspace(workspace).filter(path=str(folder))
    grant = grants.first() or grant_folder(workspace, str(folder), note="The demo's own files.", by=by)
    return create_named(Source, workspace, {"label": LABEL, "grant": grant}, by=by)


def choose_contexts(source: Source, agents: list[dict[str, Any]], *, by: Actor) -> None:
    """Sub-agents without rules of their own read as their parents do."""
    rows = {row.slug: row for row in Agent.objects.in_workspace(source.workspace_id)}
    for entry in agents:
        if harness := entry.get("harness"):
            agent = rows[entry["slug"]]
            folder = agent.working_directory
            choose_context(agent, source, harness, working_directory=folder, expected=agent.revision, by=by)


def look(source: Source, *, by: Actor) -> None:
    """What a worker does, at once and without one."""
    asked = request_refresh(source, cause="person", by=by)
    if run := claim_run(source.workspace_id, asked.pk):
        refresh_source(run)


def agree(source: Source, *, by: Actor, wen: Actor) -> None:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    for file in rows.select_related("source", "newest").order_by("path"):
        if file.path == DRAFT:
            ignore_file(file, by=wen)
        elif file.newest and file.state == "new":
            adopt_file(file, digest=file.newest.digest, by=by)
