"""The TypeScript client: its own tests, run from the source by a Node that strips types."""

import json
import re
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from project.api.docs_views import get_openapi_document
from project.api.subset import select_operations
from tests.clients.typescript_package import PACKAGE, copy_package, find_node, run


def run_node_tests(node: str, package: Path, pattern: str) -> subprocess.CompletedProcess[str]:
    return run([node, "--test", *sorted((package / "test").glob(pattern))], package)


@pytest.fixture
def node() -> str:
    found = find_node()
    if found is None:
        pytest.skip("NOT RUN: the tests of the TypeScript client need Node 22.18 or newer")
    return found


def test_the_tests_of_the_client_pass(node):
    result = run_node_tests(node, PACKAGE, "*.test.ts")
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-2_000:]
    assert "fail 0" in result.stdout


# What to change in which module, and a test that must fail then.
FAULTS = {
    "keeps refused copies": (
        "cache.ts",
        "new Set([UNAUTHORIZED, 403, 404, 410])",
        "new Set([])",
        "410 is thrown",
    ),
    "trusts proxies": ("responses.ts", "if (type !== PROBLEM_TYPE) return null;", "", "a proxy's responses"),
    "does not share requests": ("cache.ts", "if (running) return running;", "", "simultaneous first calls"),
    "trusts files": ("store.ts", "|| !isSealed", "", "a changed time in the header"),
    "has no stale-if-error": (
        *("cache.ts", "if (!entry || isFinal(error)", "if (entry || isFinal(error)"),
        "a killed server",
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=[] if name == "trusts files" else [pytest.mark.hard]) for name in FAULTS],
)
def test_a_client_with_a_fault_is_detected(fault, node, tmp_path):
    module, text, replacement, failure = FAULTS[fault]
    package = copy_package(tmp_path)
    source = (package / "src" / module).read_text()
    assert text in source
    (package / "src" / module).write_text(source.replace(text, replacement))
    result = run_node_tests(node, package, "behaviour.test.ts")
    assert result.returncode == 1
    failed = result.stdout.partition("failing tests")[2]
    assert failure in failed, result.stdout[-3_000:]


def test_the_package_lock_names_no_registry():
    lock = (PACKAGE / "package-lock.json").read_text()
    assert '"integrity"' in lock
    assert "resolved" not in lock
    assert not re.findall(r'^\s*"(?!url"|funding")[^"]*": "\w+://', lock, re.MULTILINE)


# --- types ---------------------------------------------------------------------------------------------


def find_outdated_operations(document: dict[str, Any]) -> list[str]:
    """Return the operations in openapi.json, from which types are generated, that differ in the document."""
    stored = json.loads((PACKAGE / "openapi.json").read_text())
    names = [
        operation["operationId"]
        for item in stored["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    return [] if select_operations(document, names) == stored else names


def test_the_types_are_generated_from_the_present_document() -> None:
    """Otherwise: manage.py export_openapi --operation … > openapi.json; npm run generate."""
    assert find_outdated_operations(get_openapi_document()) == []


@pytest.mark.planted
def test_a_changed_field_of_the_api_is_detected() -> None:
    document = deepcopy(get_openapi_document())
    document["components"]["schemas"]["Prompt"]["properties"]["served_hash"] = {"type": "string"}
    assert find_outdated_operations(document)
