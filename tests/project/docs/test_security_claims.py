"""SECURITY.md: every claim of “How it is built” names a test, and pytest collects each of them."""

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.project.deployment.production_settings import ROOT
from tests.pytest_servers import COLLECTED_IDS

SECTION = "How it is built"
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PARAMETERS = re.compile(r"\[.*\]$")


def list_claims(text: str) -> dict[str, list[str]]:
    """Return the bullets of the section with the tests that each of them names."""
    claims: dict[str, list[str]] = {}
    heading, depth = "", 0
    tokens = MarkdownIt("commonmark").parse(text)
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag in {"h1", "h2"}:
            heading = tokens[index + 1].content
        depth += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if heading == SECTION and depth and token.type == "inline":
            claims[token.content] = list_tests(token)
    return claims


def list_tests(bullet: Token) -> list[str]:
    codes = [piece.content for piece in bullet.children or () if piece.type == "code_inline"]
    return [code for code in codes if code.startswith("tests/")]


@cache
def collect_tests(files: frozenset[str]) -> frozenset[str]:
    """Return the ids of the tests that pytest collects in these files, and the files that have any."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    there = sorted(file for file in files if (ROOT / file).is_file())
    done = subprocess.run([*command, *there], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return without_parameters(line for line in done.stdout.splitlines() if "::" in line)


def without_parameters(ids: Iterable[str]) -> frozenset[str]:
    """Return the ids without parameters, and their files."""
    names = {PARAMETERS.sub("", test_id) for test_id in ids}
    return frozenset(names | {name.partition("::")[0] for name in names})


def find_missing_tests(names: Iterable[str], collected: frozenset[str]) -> list[str]:
    return [name for name in names if name not in collected]


@pytest.fixture(scope="module")
def collected(pytestconfig: pytest.Config) -> frozenset[str]:
    """What pytest collects in the named files: in a run of the whole suite what this run has collected."""
    names = [name for tests in list_claims(TEXT).values() for name in tests]
    files = frozenset(name.partition("::")[0] for name in names)
    is_full_run = pytestconfig.args == pytestconfig.getini("testpaths") and not pytestconfig.getoption("lf")
    if not is_full_run:
        return collect_tests(files)
    ids = pytestconfig.stash[COLLECTED_IDS]
    return without_parameters(ids)


def test_every_claim_names_a_test():
    claims = list_claims(TEXT)
    assert len(claims) >= 40
    assert [claim for claim, tests in claims.items() if not tests] == []


def test_every_named_test_is_collected(collected):
    names = [name for tests in list_claims(TEXT).values() for name in tests]
    assert find_missing_tests(names, collected) == []


@pytest.mark.planted
def test_a_claim_without_a_test_is_found():
    keys = "- Keys are random.\n  Test: `tests/a.py::test_b`\n- They expire; see `docs/keys.md`.\n"
    claims = list_claims(f"## {SECTION}\n\n### Keys\n\n{keys}\n## For operators\n\n- Run it.\n")
    assert list(claims.values()) == [["tests/a.py::test_b"], []]


@pytest.mark.planted
def test_a_test_that_is_not_collected_is_found(collected):
    file = "tests/project/settings/test_settings.py"
    names = [f"{file}::test_that_was_renamed", "tests/no/such_file.py", f"{file}::settings_under", file]
    assert find_missing_tests(names, collected) == names[:3]
