"""Check the licences of all locked runtime packages: permissive, with a notice for each exception."""

import re
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PERMISSIVE = re.compile(r"\b(MIT|MIT-0|BSD|Apache|PSF|ISC|Zlib|0BSD)\b", re.IGNORECASE)
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public License|\bEUPL|\bSSPL", re.IGNORECASE)
# Used as libraries, unchanged and replaceable, which is what the LGPL asks for.
ALLOWED_LGPL = {"psycopg", "psycopg-binary", "psycopg-pool"}


# Licences whose terms ask for a notice: NOTICE.md names each package that declares one of them.
NOTICE_LICENCES = re.compile(r"\bL?GPL|\bMPL|Mozilla Public License", re.IGNORECASE)


def list_locked_requirements() -> list[Requirement]:
    """List the locked runtime packages whose environment marker applies here."""
    lines = (ROOT / "requirements" / "run.txt").read_text().splitlines()
    pins = [Requirement(line.removesuffix("\\").strip()) for line in lines if re.match(r"[A-Za-z0-9]", line)]
    return [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]


def describe_licence(metadata: Any) -> str:
    """Join what the package declares. A `License` field may hold the whole text; its first line is enough."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    return "; ".join([(metadata.get("License") or "").partition("\n")[0], *classifiers])


def find_licence_problem(name: str, metadata: Any) -> str:
    licence = describe_licence(metadata)
    if COPYLEFT.search(licence):
        is_allowed = name in ALLOWED_LGPL and licence.startswith("LGPL-")
        return "" if is_allowed else f"{name}: {licence}"
    return "" if PERMISSIVE.search(licence) else f"{name}: no permissive licence in “{licence}”"


def find_missing_notice(name: str, metadata: Any, notices: str) -> str:
    """Return a message if NOTICE.md has no line for a package whose licence asks for one."""
    licence = describe_licence(metadata)
    is_named = re.search(rf"^\| {re.escape(name)} \|", notices, re.MULTILINE) is not None
    return f"{name}: {licence}, not in NOTICE.md" if NOTICE_LICENCES.search(licence) and not is_named else ""


def list_licence_problems() -> list[str]:
    notices = (ROOT / "NOTICE.md").read_text(encoding="utf-8")
    problems: list[str] = []
    for pin in list_locked_requirements():
        metadata = distribution(pin.name).metadata
        problems += [
            find_licence_problem(pin.name, metadata),
            find_missing_notice(pin.name, metadata, notices),
        ]
    return [problem for problem in problems if problem]


if __name__ == "__main__":
    found = list_licence_problems()
    print("\n".join(found))
    sys.exit(1 if found else 0)
