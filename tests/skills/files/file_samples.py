"""Files on disk and rows about them, for tests of the pages that show them."""

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
    """Another size or time than before, whatever the clock's grain."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    later = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(later, later))


def write_skill(root: Path, name: str, *, folder: str = "", description: str = "Makes tea.") -> str:
    path = f"{folder}.agents/skills/{name}/SKILL.md"
    write(root / path, SKILL.format(name=name, description=description))
    return path


def file_at(source: Source, path: str = "AGENTS.md") -> Any:
    """A ContextFile; tests know which of its revisions are there."""
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return rows.select_related("source", "newest__content", "in_force__content", "agreed").get(path=path)


def adopted(source: Source, path: str = "AGENTS.md") -> Any:
    file = file_at(source, path)
    return approve_file(file, digest=file.newest.digest if file.newest and file.is_there else "", by=BY)


def every_state(workspace: Workspace, root: Path, **values: Any) -> Source:
    """A source with one file in each of the states that an inbox shows."""
    source = make_source(workspace, root, **values)
    for name in ("quarantined", "invalid", "missing", "changed"):
        write(root / name / "AGENTS.md", GOOD)
    refreshed(source)
    for name in ("quarantined", "invalid", "missing", "changed"):
        adopted(source, f"{name}/AGENTS.md")
    write(root / "quarantined/AGENTS.md", POISON)
    write(root / "invalid/AGENTS.md", b"Fine at first.\nThen \xff not.\n")
    (root / "missing/AGENTS.md").unlink()
    write(root / "changed/AGENTS.md", GOOD + "Knock first.\n")
    write(root / "new/AGENTS.md", GOOD)
    refreshed(source)
    return source
