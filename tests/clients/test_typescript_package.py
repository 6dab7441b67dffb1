"""The package of the TypeScript client: built, checked, packed, and used by bots."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.live import LiveServer
from tests.clients.typescript_package import (
    find_node_20,
    install_node_24,
    install_package,
    pack,
    run,
    run_bot,
    run_or_fail,
)
from tests.factories import make_skill, make_task
from tests.installs import install_once
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.hard
# The newest when this was written; npm's "latest" would change under us.
NEWEST_TYPESCRIPT = "7.0.2"
NODE_TYPES = "@types/node@20.19.43"
DECK = {"agent": "pilot", "channel": "deck"}
# A user's file: it must compile, and each expected error must be one.
USER = """
import { Client, Problem, type Prompt, type PromptStore } from "@dramatis/client";
import { prepareCall } from "@dramatis/client/ai-sdk";
import { instructions } from "@dramatis/client/openai-agents";

const client = new Client({ url: "http://127.0.0.1:9", key: "k", attempts: 1 });
const prompt: Prompt = await client.getPrompt({ agent: "a", channel: "b", fallback: "x" });
const version: number = prompt.version;
const text: string = await instructions(client, { agent: "a", channel: "b", fallback: prompt.text })();
const settings = await prepareCall(client, { agent: "a", channel: "b", fallback: "x" })({ temperature: 1 });
console.log(text, version, settings.temperature, Problem.name);
export const store: PromptStore | undefined = undefined;
// @ts-expect-error a prompt cannot be changed
export const change = (): string => (prompt.text = "");
// @ts-expect-error the channel is required
export const call = (): Promise<Prompt> => client.getPrompt({ agent: "a" });
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_package(tmp_path_factory.mktemp("typescript"))


@pytest.fixture(scope="module")
def node_24() -> str:
    return install_node_24()


@pytest.fixture(scope="module")
def bot_folder(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that uses the packed client."""
    folder = tmp_path_factory.mktemp("bot")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    packed = pack(package, folder)
    run_or_fail(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=peer", packed], folder
    )
    return folder


def list_tests(package: Path, folder: str) -> list[str | Path]:
    return sorted((package / "build" / folder).glob("*.test.js"))


# --- the package -----------------------------------------------------------------------------------------


def test_its_tests_pass_with_node_20(package):
    run_or_fail([find_node_20(), "--test", *list_tests(package, "test")], package)


def test_its_tests_pass_with_node_24(package, node_24):
    run_or_fail([node_24, "--test", *list_tests(package, "test")], package)
    run_or_fail([node_24, "--test", *sorted((package / "test").glob("*.test.ts"))], package)


def test_the_package_is_sound(package, bot_folder):
    [packed] = bot_folder.glob("*.tgz")
    assert "All good!" in run_or_fail(["npx", "publint", "run", "--strict", packed], package)
    run_or_fail(["npx", "attw", packed, "--profile", "esm-only"], package)
    listed = json.loads(run_or_fail(["npm", "pack", "--dry-run", "--json", "--ignore-scripts"], package))
    files = next(iter(listed.values()))["files"] if isinstance(listed, dict) else listed[0]["files"]
    paths = {file["path"] for file in files}
    assert {"README.md", "LICENSE", "package.json", "dist/index.js", "dist/index.d.ts"} <= paths
    assert {path.partition("/")[0] for path in paths} == {"README.md", "LICENSE", "package.json", "dist"}


def test_the_types_are_those_that_the_generator_makes(package, tmp_path):
    stored = (package / "src" / "api.ts").read_text()
    run_or_fail(["npx", "openapi-typescript", "openapi.json", "-o", tmp_path / "api.ts"], package)
    assert (tmp_path / "api.ts").read_text() == stored


def test_it_has_no_dependencies(bot_folder):
    installed = {path.name for path in (bot_folder / "node_modules").iterdir() if path.name[0] != "."}
    assert installed == {"@dramatis"}


def install_typescript(version: str) -> Path:
    """Install this version of the compiler once for all runs, and return the path of `tsc`."""

    def install(folder: Path) -> None:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
        run_or_fail([*command, f"typescript@{version}", NODE_TYPES], folder)

    return install_once(f"typescript-{version}", [], install) / "node_modules" / ".bin" / "tsc"


@pytest.mark.parametrize("version", ["5.9.3", NEWEST_TYPESCRIPT])
def test_users_and_sources_compile(version, package, bot_folder):
    compiler = install_typescript(version)
    (bot_folder / "user.ts").write_text(USER)
    for module, resolution in (("nodenext", "nodenext"), ("esnext", "bundler"), ("preserve", "bundler")):
        options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"]
        options += ["--module", module, "--moduleResolution", resolution]
        result = run([compiler, *options, "user.ts"], bot_folder)
        # The types of the AI SDK are not installed here; everything else must be right.
        others = [line for line in result.stdout.splitlines() if "Cannot find module 'ai'" not in line]
        assert not others, result.stdout
    run_or_fail([compiler, "-p", "tsconfig.json", "--noEmit"], package)


def test_a_user_without_frameworks_imports_it(bot_folder, node_24):
    (bot_folder / "import.mjs").write_text(
        'import { Client } from "@dramatis/client";\n'
        'import { instructions } from "@dramatis/client/openai-agents";\n'
        'import { prepareCall } from "@dramatis/client/ai-sdk";\n'
        'const client = new Client({ url: "http://127.0.0.1:9", key: "k", attempts: 1 });\n'
        'const options = { agent: "a", channel: "b", fallback: "Be careful." };\n'
        "const settings = await prepareCall(client, options)({});\n"
        "console.log(await instructions(client, options)(), JSON.stringify(settings));\n"
    )
    expected = 'Be careful. {"instructions":"Be careful."}\n'
    for node in (node_24, find_node_20()):
        assert run_or_fail([node, "import.mjs"], bot_folder) == expected


# --- frameworks ------------------------------------------------------------------------------------------


def test_each_framework_sends_the_served_text(package, node_24):
    """The frameworks need Node 22 or newer."""
    output = run_or_fail([node_24, "--test", *list_tests(package, "test/frameworks")], package)
    assert "fail 0" in output


@pytest.mark.planted
def test_an_adapter_that_changes_the_text_is_detected(package, node_24, tmp_path):
    adapter = package / "build" / "src" / "adapters" / "openai-agents.js"
    source = adapter.read_text()
    try:
        adapter.write_text(source.replace(".text;", ".text.trim();"))
        assert adapter.read_text() != source
        result = run([node_24, "--test", *list_tests(package, "test/frameworks")], package)
    finally:
        adapter.write_text(source)
    assert result.returncode == 1
    assert "OpenAI Agents sends" in result.stdout.partition("failing tests")[2]


# --- the real server -------------------------------------------------------------------------------------


@pytest.fixture
def stage(workspace, server) -> Stage:
    return make_stage(workspace)


@pytest.fixture
def environment(stage: Stage, server: LiveServer, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return a function that builds the environment of a bot."""
    settings = {
        "DRAMATIS_URL": server.url,
        "DRAMATIS_KEY": stage.secret,
        "DRAMATIS_CACHE_DIR": str(tmp_path / "copies"),
    }
    return lambda **changes: {**os.environ, **settings, **changes}


@pytest.mark.django_db(transaction=True)
def test_every_call_works_with_the_real_server(stage, environment, bot_folder, node_24):
    make_skill(stage.workspace, "tea", body="Boil water first.", agents=[stage.agent])
    steps = [{"title": "Boil"}, {"title": "Pour"}]
    task = make_task(stage.workspace, "Make tea", agent=stage.agent, steps=steps)
    with run_bot(node_24, bot_folder, environment()) as bot:
        prompt = bot.call("getPrompt", DECK)
        assert "Be brave." in prompt["text"]
        assert (prompt["version"], prompt["ledgerId"]) == (stage.prompt.latest.number, stage.rows[0].pk)
        assert "".join([block["text"] for block in prompt["blocks"]]) == prompt["text"]
        assert bot.call("report", DECK)["is_last_served"]
        assert not bot.call("report", DECK, {"text": "Be sly."})["is_last_served"]
        # An unchanged prompt is not sent again.
        bot.call("clock", time.time() + 1_000)
        assert not bot.call("getPrompt", DECK)["isStale"]
        assert stage.rows[-1].status == 304
        rendered = bot.call("render", DECK, {"append": "Be quick."})
        assert "Be quick." in rendered["text"]
        [known, unknown] = bot.call("batchGet", [DECK, {"agent": "pilot", "channel": "nowhere"}])
        assert known["prompt"]["text"] == prompt["text"]
        assert (unknown["prompt"], unknown["error"]["status"]) == (None, 404)
        assert bot.call("remember", "Likes coffee.", {"agent": "pilot"})["status"] == "proposed"
        assert "Boil water first." in bot.call("skill", "pilot", "tea")["body"]
        assert bot.call("completeStep", task.number, 0)["number"] == task.number
        assert bot.call("getPrompt", {**DECK, "version": 2})["version"] == 2
        refused = bot.call("getPrompt", {**DECK, "agent": "nobody"})
        assert (refused["error"], refused["status"], refused["code"]) == ("Problem", 404, "not_found")


@pytest.mark.django_db(transaction=True)
def test_a_bot_survives_a_killed_server_and_notices_its_restart(
    stage, server, environment, bot_folder, node_24
):
    with run_bot(node_24, bot_folder, environment()) as bot:
        text = bot.call("getPrompt", DECK)["text"]
        server.kill()
        bot.call("clock", time.time() + 1_000)
        for _ in range(50):
            prompt = bot.call("getPrompt", DECK)
            assert (prompt["text"], prompt["isStale"]) == (text, True)
        # A new process uses the file; one without a folder has nothing but its fallback.
        with run_bot(node_24, bot_folder, environment()) as other:
            assert other.call("getPrompt", DECK)["text"] == text
        with run_bot(node_24, bot_folder, environment(DRAMATIS_CACHE_DIR="", DRAMATIS_ATTEMPTS="1")) as other:
            assert other.call("getPrompt", DECK)["error"] == "Unreachable"
            fallback = other.call("getPrompt", {**DECK, "fallback": "Be careful."})
            assert (fallback["text"], fallback["isFallback"]) == ("Be careful.", True)
        stage.edit("Be bold.")
        server.start()
        bot.call("clock", time.time() + 1_100)
        bot.call("getPrompt", DECK)
        bot.call("settle")
        prompt = bot.call("getPrompt", DECK)
        assert ("Be bold." in prompt["text"], prompt["isStale"]) == (True, False)
