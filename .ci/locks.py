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
# Lock file and its dependency group in pyproject.toml.
GROUPS = {"run": "embedded", "test": "test", "dev": "dev", "tracing": "tracing"}
# Locks that are installed besides another one, without the dependencies of the product.
ADDITIONAL = frozenset({"tracing"})


def list_requirements(project: dict[str, Any], group: str) -> Iterator[Requirement]:
    for line in project["dependency-groups"][group]:
        if isinstance(line, dict):
            yield from list_requirements(project, line["include-group"])
        else:
            yield Requirement(line)


def parse_pins(text: str) -> dict[str, list[str]]:
    """Return versions by package; a universal lock may pin a package twice, for different platforms."""
    pins: dict[str, list[str]] = {}
    for name, version in PIN.findall(text):
        pins.setdefault(canonicalize_name(name), []).append(version)
    return pins


def find_lock_problems(lock: str, text: str, project: dict[str, Any]) -> Iterator[str]:
    if "://" in text:
        yield f"requirements/{lock}.txt names a host"
    pins = parse_pins(text)
    lines = () if lock in ADDITIONAL else project["project"]["dependencies"]
    runtime = [Requirement(line) for line in lines]
    for requirement in [*runtime, *list_requirements(project, GROUPS[lock])]:
        versions = pins.get(canonicalize_name(requirement.name), [])
        if not any(requirement.specifier.contains(version, prereleases=True) for version in versions):
            yield f"requirements/{lock}.txt does not satisfy {requirement}: run python3 dev.py lock"


def find_unhashed_pins(lock: str, text: str) -> Iterator[str]:
    for block in re.split(r"\n(?=\S)", text):
        if PIN.match(block) and "--hash=sha256:" not in block:
            yield f"requirements/{lock}.txt: {block.split()[0]} has no hash"


def find_file_problems() -> Iterator[str]:
    for name in ("uv.lock", "pylock.toml"):
        if (ROOT / name).exists():
            yield f"{name} records registry hosts: delete it"
    tools = sorted((ROOT / "tests").glob("**/package-lock.json"))
    for path in (ROOT / "package-lock.json", ROOT / "frontend" / "package-lock.json", *tools):
        packages = json.loads(path.read_text()).get("packages", {}) if path.exists() else {}
        if any("resolved" in package for package in packages.values()):
            yield f"{path.relative_to(ROOT)} names a registry: set omit-lockfile-registry-resolved in .npmrc"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    problems = list(find_file_problems())
    for lock in GROUPS:
        text = (ROOT / "requirements" / f"{lock}.txt").read_text()
        problems += [*find_lock_problems(lock, text, project), *find_unhashed_pins(lock, text)]
    if "://" in (ROOT / "requirements" / "uv.txt").read_text():
        problems.append("requirements/uv.txt names a host")
    for path in sorted((ROOT / "tests").glob("**/requirements.txt")):
        text = path.read_text()
        if "://" in text or "--hash=" not in text:
            problems.append(f"{path.relative_to(ROOT)} names a host or has no hashes")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
