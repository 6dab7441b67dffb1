"""The licences of all runtime dependencies: permissive, apart from named exceptions."""

import re
from email.message import Message
from importlib.metadata import distribution
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.project.deployment.production_settings import ROOT

PERMISSIVE = re.compile(r"\b(MIT|MIT-0|BSD|Apache|PSF|ISC|Zlib|0BSD)\b", re.IGNORECASE)
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public License|\bEUPL|\bSSPL", re.IGNORECASE)
# Used as libraries, unchanged and replaceable, which is what the LGPL asks for.
ALLOWED_LGPL = {"psycopg", "psycopg-binary", "psycopg-pool"}


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


def test_all_runtime_dependencies_are_permissively_licensed():
    pins = list_locked_requirements()
    assert len(pins) > 50
    problems = [find_licence_problem(pin.name, distribution(pin.name).metadata) for pin in pins]
    assert [problem for problem in problems if problem] == []


@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("patiencediff", {"License-Expression": "GPL-2.0-or-later"}),
        ("other", {"License-Expression": "LGPL-3.0-only"}),
        ("psycopg", {"License-Expression": "GPL-3.0-only"}),
        (
            "other",
            {"License": "", "Classifier": "License :: OSI Approved :: GNU General Public License (GPL)"},
        ),
        ("unknown", {}),
        ("named-wrongly", {"License": "Proprietary\nMIT"}),
    ],
)
def test_other_licences_are_found(name, headers):
    message = Message()
    for header, value in headers.items():
        message[header] = value
    assert find_licence_problem(name, message)
