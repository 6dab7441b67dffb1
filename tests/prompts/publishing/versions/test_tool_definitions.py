"""Tool definitions beside the text: on pages, in downloads, in diffs, in replays and in the size table."""

import json
from itertools import count
from typing import Any, NamedTuple

import pytest
from django.test import Client

from personas.api_keys.services import create_key
from personas.erasure.services import erase_contents
from personas.models import Agent, Memory, Tool, Workspace
from personas.records.services import edit_record
from prompts.assembly.slots import Slots
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.services import replay_entry
from prompts.models import AgentPrompt, PromptVersion
from prompts.proof.evidence import TOOLS_CHECK, CheckResult
from prompts.publishing.versions.selectors import get_version_text
from tests.api_client import Api
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool
from tests.personas.api.prompts_stage import good, problem
from tests.prompts.serving.serving_stage import fetch
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "The <file> to read."}}}
DESCRIPTION = "Read a file.\nIt must be <b>text</b>."
KEY_NUMBERS = count(1)
SECRET_MEMORY = "The harbour master is called Ludmila."


class Desk(NamedTuple):
    """An agent with two tools, whose definitions are sent with the text."""

    workspace: Workspace
    agent: Agent
    tool: Tool

    @property
    def prompt(self) -> AgentPrompt:
        return AgentPrompt.objects.in_workspace(self.workspace).get(agent=self.agent)

    def version(self, number: int) -> PromptVersion:
        return PromptVersion.objects.in_workspace(self.workspace).get(prompt=self.prompt, number=number)

    def describe_tool(self, text: str) -> None:
        tool = Tool.objects.in_workspace(self.workspace).get(pk=self.tool.pk)
        edit_record(tool, {"description": text}, expected=tool.revision, by=BY)

    def url(self, path: str) -> str:
        return f"/w/{self.workspace.slug}/{path}"

    def version_url(self, number: int, path: str = "") -> str:
        return self.url(f"prompts/{self.prompt.pk}/versions/{number}/{path}")


def set_stage(shared: SharedCast) -> Desk:
    workspace = shared.workspace
    tool = make_tool(workspace, "read_file", description=DESCRIPTION, parameters=json.dumps(SCHEMA))
    other = make_tool(workspace, "list_files", description="List files.")
    soul, channel = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    agent = make_agent(workspace, "pilot", soul=soul, channels=[channel], tools=[tool, other])
    make_memory(workspace, SECRET_MEMORY, agent=agent)
    return Desk(workspace, agent, tool)


@pytest.fixture
def desk(props: Desk) -> Desk:
    return props


def serve(desk: Desk, slots: Slots | None = None) -> Any:
    _, secret = create_key(desk.workspace, f"Reception {next(KEY_NUMBERS)}", {}, by=BY)
    return fetch(secret, slots=slots)


def erase_definitions(desk: Desk) -> None:
    """Erase the stored definitions, as happens to contents that an erased record shares with them."""
    erase_contents(desk.workspace.pk, [latest(desk).tools])


def latest(desk: Desk) -> PromptVersion:
    version = PromptVersion.objects.in_workspace(desk.workspace).filter(prompt=desk.prompt).first()
    assert version
    return version


# --- pages and downloads -------------------------------------------------------------------------------


def test_the_version_page_lists_the_definitions(desk: Desk, as_alice: Client) -> None:
    version = latest(desk)
    page = as_alice.get(desk.version_url(version.number))
    html = page.content.decode()
    tools = page.context["reading"].tools
    assert [tool.name for tool in tools] == ["read_file", "list_files"]
    assert sum(tool.tokens for tool in tools) == version.tool_tokens
    assert page.context["reading"].tokens == version.tokens
    assert "It must be &lt;b&gt;text&lt;/b&gt;." in html
    assert "The &lt;file&gt; to read." in html
    assert "<b>text</b>" not in html


def test_the_json_of_a_version_has_them_and_the_text_does_not(desk: Desk, as_alice: Client) -> None:
    version = latest(desk)
    data = json.loads(as_alice.get(desk.version_url(version.number, "json/")).content)
    assert [tool["name"] for tool in data["tools"]] == ["read_file", "list_files"]
    assert data["tools"][0] == {"name": "read_file", "description": DESCRIPTION, "parameters": SCHEMA}
    assert data["text_tokens"] + data["tool_tokens"] == data["tokens"]
    text = as_alice.get(desk.version_url(version.number, "text/")).content
    assert text == get_version_text(version).encode()


def test_a_page_says_that_definitions_were_erased(desk: Desk, as_alice: Client) -> None:
    number = latest(desk).number
    erase_definitions(desk)
    page = as_alice.get(desk.version_url(number))
    assert page.context["reading"].definitions is None
    assert "The tool definitions were erased." in page.content.decode()
    assert b"Parameters of read_file" not in page.content


# --- replay --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_replay_has_the_definitions_that_the_call_selected(
    desk: Desk, as_alice: Client, admin: Api
) -> None:
    plain, selected = serve(desk), serve(desk, Slots(tools=("list_files", "no_such")))
    names = {plain.ledger_id: ["read_file", "list_files"], selected.ledger_id: ["list_files"]}
    for row, expected in names.items():
        replay = replay_entry(desk.workspace, row)
        assert [tool["name"] for tool in replay.tools or ()] == expected
        page = as_alice.get(desk.url(f"time-machine/fetches/{row}/"))
        assert [tool.name for tool in page.context["reading"].tools] == expected
        download = as_alice.get(desk.url(f"time-machine/fetches/{row}/tools/"))
        assert [tool["name"] for tool in json.loads(download.content)] == expected
        assert download["Content-Disposition"].endswith(f'ledger-{row}.tools.json"')
        assert [tool["name"] for tool in good(admin.get(f"ledger/{row}/replay"))["tools"]] == expected
        assert as_alice.get(desk.url(f"time-machine/fetches/{row}/text/")).content == replay.text.encode()


def test_erased_definitions_are_missing_from_a_replay(desk: Desk, as_alice: Client) -> None:
    row = serve(desk).ledger_id
    erase_definitions(desk)
    assert replay_entry(desk.workspace, row).tools is None
    assert as_alice.get(desk.url(f"time-machine/fetches/{row}/tools/")).status_code == 410


def test_an_evidence_bundle_contains_the_definitions(desk: Desk) -> None:
    replay = replay_entry(desk.workspace, serve(desk).ledger_id)
    bundle = build_evidence(replay)
    assert [tool["name"] for tool in json.loads(bundle["tools"])] == ["read_file", "list_files"]
    assert get_tools_check(bundle).state == "ok"
    assert get_tools_check(bundle | {"tools": bundle["tools"].replace("text", "data")}).state == "failed"
    erase_definitions(desk)
    erased = build_evidence(replay)
    assert (erased["tools"], get_tools_check(erased).state) == (None, "absent")


def get_tools_check(bundle: dict[str, Any]) -> CheckResult:
    [check] = [check for check in run_evidence_checks(bundle, None) if check.name == TOOLS_CHECK]
    return check


# --- diffs ---------------------------------------------------------------------------------------------


def test_a_changed_definition_is_in_the_diff(desk: Desk, as_alice: Client, admin: Api) -> None:
    old = latest(desk)
    desk.describe_tool("Read a file of at most 2,000 lines.")
    new = latest(desk)
    assert new.number == old.number + 1
    page = as_alice.get(desk.url(f"prompts/{desk.prompt.pk}/diff/{old.number}/{new.number}/"))
    [change] = page.context["diff"].changed_tools
    assert (change.name, change.status, change.is_tool) == ("read_file", "changed", True)
    assert page.context["diff"].token_delta == new.tokens - old.tokens
    assert "at most 2,000 lines" in page.content.decode()
    peek = as_alice.get(desk.version_url(new.number, "peek/")).content.decode()
    assert "read_file" in peek
    body = good(admin.get(f"prompt-versions/{new.digest}/diff?against={old.digest}"))
    states = {tool["name"]: tool["status"] for tool in body["tools"]}
    assert states == {"read_file": "changed", "list_files": "same"}
    assert body["token_delta"] == new.tokens - old.tokens
    assert any("2,000 lines" in line["text"] for line in body["tools"][0]["lines"])


def test_added_and_removed_definitions_are_named(desk: Desk, as_alice: Client) -> None:
    old = latest(desk)
    agent = Agent.objects.in_workspace(desk.workspace).get(pk=desk.agent.pk)
    fresh = make_tool(desk.workspace, "write_file")
    edit_record(agent, {"tools": [desk.tool, fresh]}, expected=agent.revision, by=BY)
    new = latest(desk)
    page = as_alice.get(desk.url(f"prompts/{desk.prompt.pk}/diff/{old.number}/{new.number}/"))
    states = {tool.name: tool.status for tool in page.context["diff"].changed_tools}
    assert states == {"write_file": "added", "list_files": "removed"}


# --- sizes ---------------------------------------------------------------------------------------------


def test_the_size_table_has_the_largest_contributor_first(desk: Desk, admin: Api) -> None:
    version = latest(desk)
    body = good(admin.get(f"agents/pilot/channels/deck/versions/{version.number}/sizes"))
    rows = body["contributors"]
    assert [row["tokens"] for row in rows] == sorted((row["tokens"] for row in rows), reverse=True)
    counts = {"total": version.tokens, "text": version.text_tokens, "tools": version.tool_tokens}
    assert body["tokens"] == counts
    assert sum(row["characters"] for row in rows) == body["characters"]
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.01)
    definitions = {row["name"]: row for row in rows if row["kind"] == "tool_definition"}
    assert set(definitions) == {"read_file", "list_files"}
    assert sum(row["tokens"] for row in definitions.values()) == version.tool_tokens
    memory = next(row for row in rows if row["kind"] == "memory")
    assert (memory["sections"], memory["characters"] > len("Ludmila")) == (["memories"], True)
    assert {row["sections"][0] for row in rows if row["kind"] == "layout"} >= {"now"}
    problem(admin.get(f"agents/pilot/channels/deck/versions/{version.number + 1}/sizes"), 404)


def test_keys_limited_to_labels_get_sizes_without_names(
    desk: Desk, bot: Api, key_for: Any, workspace: Workspace, alice: Any
) -> None:
    path = f"agents/pilot/channels/deck/versions/{latest(desk).number}/sizes"
    assert bot.get(path).status_code == 403
    response = key_for(workspace, alice, labels=["production"]).get(path)
    rows = good(response)["contributors"]
    assert {row["name"] for row in rows} == {None}
    assert b"Ludmila" not in response.content


def test_sizes_of_erased_text_are_gone(desk: Desk, admin: Api, as_alice: Client) -> None:
    number = latest(desk).number
    erase_record(Memory.objects.in_workspace(desk.workspace).get(), reason="Asked.", by=BY)
    problem(admin.get(f"agents/pilot/channels/deck/versions/{number}/sizes"), 410, "erased")
    page = as_alice.get(desk.url("agents/pilot/versions/?channel=deck"))
    assert page.status_code == 200


@pytest.mark.slow
def test_the_prompt_page_shows_the_largest_contributors(desk: Desk, as_alice: Client) -> None:
    for at in range(9):
        make_memory(desk.workspace, f"Fact {at} of the harbour.", agent=desk.agent)
    url = desk.url("agents/pilot/versions/?channel=deck")
    page = as_alice.get(url)
    rows, hidden = page.context["size_rows"], page.context["hidden_sizes"]
    assert (len(rows), hidden > 0) == (8, True)
    assert "sizes=all#sizes" in page.content.decode()
    everything = as_alice.get(f"{url}&sizes=all")
    assert len(everything.context["size_rows"]) == len(rows) + hidden
    assert everything.context["hidden_sizes"] == 0
    assert "Tool definition" in everything.content.decode()
