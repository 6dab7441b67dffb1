"""Helpers for demo tests: settings for the demo folder, and stored file states."""

from pathlib import Path
from typing import Any

from personas.models import Workspace
from skills.models import ContextFile

SILENT, WINTERS = "operations/AGENTS.md", "research/.agents/skills/compare-two-winters/SKILL.md"
SUPPORT, GERMAN = "support/AGENTS.md", "support/.agents/skills/answer-in-german/SKILL.md"


def files_below(top: Path) -> dict[str, Any]:
    """Return settings that place the demo's files below a folder and allow reading them."""
    return {"DEMO_SOURCES": top, "DRAMATIS_SOURCE_ROOTS": [top]}


def states(workspace: Workspace) -> dict[str, str]:
    return dict(ContextFile.objects.in_workspace(workspace).values_list("path", "status"))


def file_at(workspace: Workspace, path: str) -> Any:
    """Return a ContextFile, untyped: tests know which of its revisions exist."""
    return ContextFile.objects.in_workspace(workspace).select_related("active__content").get(path=path)
