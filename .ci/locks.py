"""Check that the lock files satisfy pyproject.toml and name no host."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
# A lock's group in pyproject.toml.
GROUPS = {"run": "embedded", "test": "test", "dev": "dev"}


def wanted(project: dict[str, Any], group: str) -> Iterator[Requirement]:
    for line in project["dependency-groups"][group]:
        if isinstance(line, dict):
            yield from wanted(project, line["include-group"])
        else:
            yield Requirement(line)


def pinned(text: str) -> dict[str, list[str]]:
    """A universal lock may pin one name twice, for different machines."""
    pins: dict[str, list[str]] = {}
    for name, version in PIN.findall(text):
        pins.setdefault(canonicalize_name(name), []).append(version)
    return pins


def lock_problems(lock: str, text: str, project: dict[str, Any]) -> Iterator[str]:
    if "://" in text:
        yield f"requirements/{lock}.txt names a host"
    pins = pinned(text)
    runtime = [Requirement(line) for line in project["project"]["dependencies"]]
    for need in [*runtime, *wanted(project, GROUPS[lock])]:
        versions = pins.get(canonicalize_name(need.name), [])
        if not any(need.specifier.contains(version, prereleases=True) for version in versions):
            yield f"requirements/{lock}.txt does not satisfy {need}: run python3 dev.py lock"


def unhashed(lock: str, text: str) -> Iterator[str]:
    for block in re.split(r"\n(?=\S)", text):
        if PIN.match(block) and "--hash=sha256:" not in block:
            yield f"requirements/{lock}.txt: {block.split()[0]} has no hash"


def file_problems() -> Iterator[str]:
    for name in ("uv.lock", "pylock.toml"):
        if (ROOT / name).exists():
            yield f"{name} records registry hosts: delete it"
    for path in (ROOT / "package-lock.json", ROOT / "frontend" / "package-lock.json"):
        packages = json.loads(path.read_text()).get("packages", {}) if path.exists() else {}
        if any("resolved" in package for package in packages.values()):
            yield f"{path.relative_to(ROOT)} names a registry: set omit-lockfile-registry-resolved in .npmrc"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = list(file_problems())
    for lock in GROUPS:
        text = (ROOT / "requirements" / f"{lock}.txt").read_text()
        found += [*lock_problems(lock, text, project), *unhashed(lock, text)]
    if "://" in (ROOT / "requirements" / "uv.txt").read_text():
        found.append("requirements/uv.txt names a host")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
