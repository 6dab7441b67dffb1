"""Write pulled skills to a folder, with one subfolder per skill, and remove those that are gone."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Lists the skills that an earlier pull has written. Only these are changed and removed.
INDEX_NAME = ".dramatis-skills.json"
SKILL_FILE_NAME = "SKILL.md"
NAME_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass
class PullResult:
    """Names of the skills by what happened to their folders; for skipped ones the reason."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def write_skill_folders(folder: str | Path, files: Mapping[str, str]) -> PullResult:
    """Write the SKILL.md of each skill, and remove the skills of earlier pulls that are gone."""
    root = Path(folder).expanduser()
    root.mkdir(parents=True, exist_ok=True)
    known, result = read_index(root), PullResult()
    for name, text in sorted(files.items()):
        if reason := find_skip_reason(root, name, known):
            result.skipped[name] = reason
        elif write_if_changed(root / name / SKILL_FILE_NAME, text):
            result.written.append(name)
        else:
            result.unchanged.append(name)
    for name in sorted(known - set(files)):
        remove_skill(root / name)
        result.removed.append(name)
    write_if_changed(root / INDEX_NAME, json.dumps(sorted([*result.written, *result.unchanged])) + "\n")
    return result


def find_skip_reason(root: Path, name: str, known: set[str]) -> str:
    if not NAME_PATTERN.fullmatch(name):
        return "The name is not a valid folder name."
    path = root / name
    if path.is_symlink() or (path / SKILL_FILE_NAME).is_symlink():
        return "This is a link. Links are not followed."
    return (
        "The folder already exists and was not written by a pull."
        if path.exists() and name not in known
        else ""
    )


def read_index(root: Path) -> set[str]:
    try:
        names = json.loads((root / INDEX_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(names, list):
        return set()
    return {name for name in names if isinstance(name, str) and NAME_PATTERN.fullmatch(name)}


def write_if_changed(path: Path, text: str) -> bool:
    """Replace the file atomically, so that a bot never reads half of it. Return whether it changed."""
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
    return True


def remove_skill(folder: Path) -> None:
    """Remove the SKILL.md, and the folder unless it has other files."""
    if folder.is_symlink():
        return
    (folder / SKILL_FILE_NAME).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
