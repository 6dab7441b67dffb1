"""Helpers that write context files to disk and load their rows."""

import os
from pathlib import Path
from typing import Any

from personas.models import Workspace
from skills.files.services import approve_file
from skills.models import ContextFile, Source
from tests.factories import BY, make_source, refreshed

GOOD = "Be kind.\nNever promise a date.\n"
POISON = "Be kind.\nNever promise a date\u200b, \u202eever\u202c.\n"
SKILL = "---\nname: {name}\ndescription: {description}\n---\n\nBoil water.\n"


def write(path: Path, text: str | bytes) -> None:
    """Write a file with a new modification time, whatever the resolution of the clock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    later = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(later, later))


def write_skill(root: Path, name: str, *, folder: str = "", description: str = "Makes tea.") -> str:
    path = f"{folder}.agents/skills/{name}/SKILL.md"
    write(root / path, SKILL.format(name=name, description=description))
    return path


def file_at(source: Source, path: str = "AGENTS.md") -> Any:
    """Return a ContextFile, typed as Any because tests know which revisions are set."""
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return rows.select_related("source", "latest__content", "active__content", "approved").get(path=path)


def approve_file_at(source: Source, path: str = "AGENTS.md") -> Any:
    file = file_at(source, path)
    return approve_file(file, digest=file.latest.digest if file.latest and file.exists else "", by=BY)


def make_source_in_every_status(workspace: Workspace, root: Path, **values: Any) -> Source:
    """Create a source with one file in each status that the inbox shows."""
    source = make_source(workspace, root, **values)
    for name in ("quarantined", "invalid", "missing", "changed"):
        write(root / name / "AGENTS.md", GOOD)
    refreshed(source)
    for name in ("quarantined", "invalid", "missing", "changed"):
        approve_file_at(source, f"{name}/AGENTS.md")
    write(root / "quarantined/AGENTS.md", POISON)
    write(root / "invalid/AGENTS.md", b"Fine at first.\nThen \xff not.\n")
    (root / "missing/AGENTS.md").unlink()
    write(root / "changed/AGENTS.md", GOOD + "Knock first.\n")
    write(root / "new/AGENTS.md", GOOD)
    refreshed(source)
    return source
