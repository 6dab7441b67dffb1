"""Linters and client generators for the OpenAPI document.

Three generated clients are compiled and call a real server. The tools are pinned in tools/package-lock.json
and tools/requirements.txt, and are installed once for all runs (tests/installs.py).
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from personas.actors import Actor
from personas.api.schema import to_camel_case
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import Agent, Memory, User, Workspace
from project.api.subset import select_operations
from prompts.models import PromptLabel
from tests.clients.client_environment import get_locked_environment
from tests.clients.live import LiveServer
from tests.clients.live_fixtures import running_server, server_process  # noqa: F401  # fixtures
from tests.clients.typescript_package import find_node, link_node_modules
from tests.project.api.document_rules import list_operations
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.hard
TOOLS = Path(__file__).parent / "tools"
MAX_WARNINGS = 10
MIN_CALLS = 12


@dataclass(frozen=True)
class Workbench:
    """A folder with the document, the tools and the scripts that call the server."""

    folder: Path
    node: str

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def run_node(self, script: str, *arguments: str) -> str:
        return self.run(self.node, script, *arguments)

    def run(self, *command: object, may_fail: bool = False, with_errors: bool = False) -> str:
        result = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"},
        )
        assert may_fail or result.returncode == 0, result.stdout[-4_000:] + result.stderr[-4_000:]
        return result.stdout + result.stderr if with_errors else result.stdout


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    node = find_node()
    if node is None or shutil.which("npm") is None:
        pytest.skip("NOT RUN: linters and generators of OpenAPI need npm and Node 22.18 or newer")
    folder = tmp_path_factory.mktemp("openapi") / "tools"
    shutil.copytree(TOOLS, folder, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    bench = Workbench(folder, node)
    link_node_modules(folder)
    (folder / "venv").symlink_to(
        get_locked_environment("openapi-python", folder / "requirements.txt").parents[1]
    )
    document = Client().get("/api/v1/openapi.json").content
    (folder / "openapi.json").write_bytes(document)
    return bench


# --- linters ---------------------------------------------------------------------------------------------


def lint_with_redocly(bench: Workbench, document: str) -> dict[str, int]:
    script = "node_modules/@redocly/cli/bin/cli.js"
    output = bench.run(bench.node, script, "lint", document, "--format=json", may_fail=True)
    totals: dict[str, int] = json.loads(output)["totals"]
    return {"errors": totals["errors"], "warnings": totals["warnings"]}


def lint_with_spectral(bench: Workbench, document: str) -> dict[str, int]:
    script = "node_modules/@stoplight/spectral-cli/dist/index.js"
    output = bench.run(
        *(bench.node, script, "lint", document, "-r", "spectral.yaml", "-f", "json", "-q"), may_fail=True
    )
    severities = [finding["severity"] for finding in json.loads(output or "[]")]
    return {"errors": severities.count(0), "warnings": len(severities) - severities.count(0)}


LINTERS = {"redocly": lint_with_redocly, "spectral": lint_with_spectral}


@pytest.mark.parametrize("linter", LINTERS)
def test_linters_find_no_errors_and_few_warnings(workbench: Workbench, linter: str) -> None:
    found = LINTERS[linter](workbench, "openapi.json")
    print(f"{linter}: {found}")
    assert found["errors"] == 0
    assert found["warnings"] <= MAX_WARNINGS


@pytest.mark.planted
@pytest.mark.parametrize("linter", LINTERS)
def test_linters_find_a_broken_document(workbench: Workbench, linter: str) -> None:
    document = json.loads((workbench.folder / "openapi.json").read_text())
    del document["components"]["schemas"]["Problem"]
    (workbench.folder / "broken.json").write_text(json.dumps(document))
    assert LINTERS[linter](workbench, "broken.json")["errors"]


# --- generated clients -----------------------------------------------------------------------------------


@pytest.fixture
def stage(workspace: Workspace, server: LiveServer) -> Stage:
    """An agent whose layout is not the default one."""
    stage = make_stage(workspace)
    stage.change_layout("opal")
    return stage


@pytest.fixture
def call_server(
    stage: Stage, server: LiveServer, alice: User, workbench: Workbench
) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a script with the address of the server, a key, an agent and a channel."""
    _, secret = create_key(stage.workspace, "Generated", {}, by=Actor.person(alice), kind=ADMIN)
    channel = stage.agent.channel_links.get().channel.slug

    def call(*command: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            workbench.run(*command, server.url, secret, stage.agent.slug, channel)
        )
        return found

    return call


def get_production(stage: Stage) -> int:
    labels = PromptLabel.objects.in_workspace(stage.workspace).filter(prompt__agent=stage.agent)
    return int(labels.get(name="production").version.number)


def check_outcome(found: dict[str, Any], stage: Stage, production: int) -> None:
    """Check what a script found, and that its change of one field changed nothing else."""
    agent = Agent.objects.in_workspace(stage.workspace).get(pk=stage.agent.pk)
    assert agent.description == found["description"]
    assert agent.layout == "opal"
    assert found["layouts"] == ["opal", "opal"]
    assert get_production(stage) == production
    assert found["agents"] == [agent.slug]
    assert found["prompt"][0] == production
    assert found["prompt"][2] is True
    [memory] = Memory.objects.in_workspace(stage.workspace)
    assert found["memories"] == [memory.text]
    assert (found["source"], memory.source, found["archived"]) == ("test", "test", 204)
    assert memory.is_archived
    assert "production" in found["labels"]
    assert found["version"] is True
    assert found["batch"] == [agent.slug, "failed"]
    assert found["problem"] == "not_found"
    assert found["calls"] >= MIN_CALLS


def compile_scripts(bench: Workbench) -> None:
    """Check the types. A second run checks only what has changed."""
    incremental = ("--incremental", "--tsBuildInfoFile", "types.tsbuildinfo")
    bench.run_node("node_modules/typescript/bin/tsc", "-p", "tsconfig.json", *incremental)


@pytest.fixture(scope="module")
def typescript_clients(workbench: Workbench) -> None:
    """Generate both TypeScript clients, and compile them with the scripts that use them."""
    workbench.run_node(
        "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "generated/schema.ts"
    )
    workbench.run_node("node_modules/@hey-api/openapi-ts/bin/run.js", "-f", "hey.config.mjs")
    compile_scripts(workbench)


@pytest.mark.parametrize("script", ["fetch_client.ts", "hey_client.ts"])
def test_a_generated_typescript_client_compiles_and_works(
    typescript_clients: None,
    workbench: Workbench,
    stage: Stage,
    call_server: Callable[..., dict[str, Any]],
    script: str,
) -> None:
    production = get_production(stage)
    check_outcome(call_server(workbench.node, "--no-warnings", script), stage, production)


@pytest.mark.planted
def test_a_script_that_uses_an_unknown_field_does_not_compile(
    typescript_clients: None, workbench: Workbench
) -> None:
    script = workbench.folder / "fetch_client.ts"
    original = script.read_text()
    script.write_text(original.replace("prompt.text.length", "prompt.words.length"))
    try:
        with pytest.raises(AssertionError, match="words"):
            compile_scripts(workbench)
    finally:
        script.write_text(original)


# Media types that the generator does not support. It leaves these operations or responses out.
UNSUPPORTED = ("Unsupported content type text/markdown", "Unsupported content_type application/jsonl")


def generate_python_client(bench: Workbench, folder: Path) -> list[str]:
    """Generate the client, and return the generator's warnings, each with its reason."""
    output = bench.run(
        *("openapi-python-client", "generate", "--meta", "none"),
        *("--path", folder / "openapi.json", "--output-path", folder / "generated_client"),
        with_errors=True,
    )
    return re.findall(r"^(?:WARNING|Unable|ERROR)[^\n]*\n\n[^\n]*", output, re.MULTILINE)


@pytest.fixture(scope="module")
def python_client(workbench: Workbench) -> Path:
    """Generate the Python client, and check its types together with the script that uses it."""
    warnings = generate_python_client(workbench, workbench.folder)
    assert [text for text in warnings if not any(reason in text for reason in UNSUPPORTED)] == []
    # Errors in the generator's own templates do not count.
    workbench.run(
        *(workbench.python, "-m", "mypy", "--strict", "--follow-imports=silent", "python_client.py")
    )
    return workbench.folder / "generated_client"


def test_a_generated_python_client_changes_one_field_and_nothing_else(
    python_client: Path, workbench: Workbench, stage: Stage, call_server: Callable[..., dict[str, Any]]
) -> None:
    production = get_production(stage)
    check_outcome(call_server(workbench.python, "python_client.py"), stage, production)


@pytest.mark.planted
def test_a_default_in_the_document_would_change_another_field(
    workbench: Workbench, stage: Stage, call_server: Callable[..., dict[str, Any]]
) -> None:
    """The fault that the rule about defaults prevents: the layout changes, and production moves."""
    whole = json.loads((workbench.folder / "openapi.json").read_text())
    script = (TOOLS / "python_client.py").read_text()
    # The operations that the script calls: generating the others would take a long time.
    called = {to_camel_case(name) for name in re.findall(r"\b([a-z]+(?:_[a-z]+)+)\.sync", script)}
    ids = [operation["operationId"] for _, operation in list_operations(whole)]
    document = select_operations(whole, [name for name in ids if to_camel_case(name) in called])
    fields = document["components"]["schemas"]["AgentPatch"]["properties"]
    fields["layout"] = {"type": "string", "default": "dramatis"}
    planted = workbench.folder / "planted"
    planted.mkdir()
    shutil.copy(TOOLS / "python_client.py", planted)
    document["components"]["schemas"]["Agent"]["properties"]["etag"] = {"$ref": "#/components/schemas/None"}
    (planted / "openapi.json").write_text(json.dumps(document))
    assert any("Agent" in text for text in generate_python_client(workbench, planted))
    shutil.rmtree(planted / "generated_client")
    document["components"]["schemas"]["Agent"]["properties"]["etag"] = {"type": "string"}
    (planted / "openapi.json").write_text(json.dumps(document))
    generate_python_client(workbench, planted)
    production = get_production(stage)
    call_server(workbench.python, planted / "python_client.py")
    assert Agent.objects.in_workspace(stage.workspace).get(pk=stage.agent.pk).layout == "dramatis"
    assert get_production(stage) > production
