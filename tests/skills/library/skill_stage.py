"""Helpers that write skills to disk, trust them and let agents read their source."""

import os
from pathlib import Path

from personas.models import Agent
from skills.agent_context.services import choose_context
from skills.files.services import approve_file
from skills.models import ContextFile, Source
from tests.factories import BY

HIDDEN = "\u200b"


def skill_text(
    name: str, description: str = "Does a thing.", body: str = "Do the thing.", more: str = ""
) -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"


def write_skill(root: Path, path: str, text: str) -> Path:
    """Write a SKILL.md with a new modification time."""
    file = root / path / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    at = file.stat().st_mtime_ns + 1_000_000 if file.exists() else None
    file.write_text(text)
    if at:
        os.utime(file, ns=(at, at))
    return file


def get_skill_file(source: Source, path: str) -> ContextFile:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return rows.select_related("source", "latest__content", "active__content").get(path=f"{path}/SKILL.md")


def trust_skill(source: Source, path: str) -> ContextFile:
    file = get_skill_file(source, path)
    assert file.latest is not None
    return approve_file(file, digest=file.latest.digest, by=BY)


def choose_source(agent: Agent, source: Source, harness: str = "plain", working_directory: str = "") -> None:
    choose_context(
        agent, source, harness, working_directory=working_directory, expected=agent.revision, by=BY
    )
