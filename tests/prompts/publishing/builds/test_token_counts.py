"""Token figures of a version: its text as a plain fetch sends it, and its tool definitions, counted apart."""

import json
from typing import NamedTuple

import pytest

from personas.api_keys.services import create_key
from personas.models import Agent, Tool, Workspace
from personas.records.services import edit_record
from prompts.assembly.layouts import LAYOUTS
from prompts.models import AgentPrompt, PromptSettings, PromptVersion
from prompts.publishing.builds.tokens import count_tokens
from prompts.publishing.preview.drafts import build_draft, list_affected_agents
from prompts.publishing.preview.impact import compute_impact
from prompts.publishing.versions.segments import encode_json
from prompts.serving.cache import render_version_json
from prompts.studio.fleet.prompt_status import (
    STATE_OVER_BUDGET,
    build_state_condition,
    list_prompts_with_status,
)
from tests.factories import BY, make_agent, make_channel, make_soul, make_tool
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
SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "The file to read."}}}


class Desk(NamedTuple):
    """An agent with one tool, whose definition is sent with the text."""

    workspace: Workspace
    agent: Agent
    tool: Tool

    @property
    def version(self) -> PromptVersion:
        rows = AgentPrompt.objects.in_workspace(self.workspace).select_related("latest")
        version = rows.get(agent=self.agent).latest
        assert version
        return version

    def set_layout(self, layout: str) -> None:
        agent = Agent.objects.in_workspace(self.workspace).get(pk=self.agent.pk)
        edit_record(agent, {"layout": layout}, expected=agent.revision, by=BY)


def set_stage(shared: SharedCast) -> Desk:
    workspace = shared.workspace
    tool = make_tool(
        workspace, "read_file", description="Read a file of the project.", parameters=json.dumps(SCHEMA)
    )
    soul, channel = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    agent = make_agent(workspace, "pilot", soul=soul, channels=[channel], tools=[tool])
    return Desk(workspace, agent, tool)


@pytest.fixture
def desk(props: Desk) -> Desk:
    return props


def count_read_file() -> int:
    definition = {"name": "read_file", "description": "Read a file of the project.", "parameters": SCHEMA}
    return count_tokens(encode_json(definition).decode())


def test_the_total_is_text_and_tool_definitions(desk: Desk) -> None:
    version = desk.version
    assert version.tool_tokens == count_read_file() > 0
    assert version.text_tokens == sum(tokens for _, tokens in version.sizes.values())
    assert version.tokens == version.text_tokens + version.tool_tokens
    assert json.loads(f"{{{render_version_json(version)[:-1]}}}")["tokens"] == {
        "total": version.tokens,
        "text": version.text_tokens,
        "tools": version.tool_tokens,
        "sections": {section: tokens for section, (_, tokens) in version.sizes.items()},
    }


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_tokens_are_those_of_a_plain_fetch(desk: Desk, layout: str) -> None:
    desk.set_layout(layout)
    version = desk.version
    assert version.layout == layout
    served = serve(desk)
    # Sections are counted one by one, and the time is another: a few tokens of difference.
    assert abs(version.text_tokens - count_tokens(served)) <= 6
    assert "⟦" not in served


def test_a_slot_that_a_plain_fetch_leaves_out_has_no_tokens(desk: Desk) -> None:
    desk.set_layout("dramatis")
    sizes = desk.version.sizes
    assert sizes["task"][1] == sizes["background"][1] == sizes["previous_error"][1] == 0
    assert sizes["now"][1] > 5


def test_a_budget_is_compared_with_the_total(desk: Desk) -> None:
    version = desk.version
    settings = PromptSettings(workspace=desk.workspace, token_budget=version.tokens)
    settings.save()
    assert not list_over_budget(desk)
    settings.token_budget = version.tokens - 1
    settings.save()
    assert version.text_tokens < settings.token_budget
    assert [row.agent_id for row in list_over_budget(desk)] == [desk.agent.pk]


def test_the_impact_of_a_longer_definition_is_that_of_the_build(desk: Desk) -> None:
    before = desk.version
    values = {"description": "Read a file of the project. Large files are cut after 2,000 lines."}
    draft = build_draft(desk.tool, values)
    impact = compute_impact(desk.workspace, draft, list_affected_agents(desk.tool, draft))
    [group] = impact.groups
    assert "tool_definitions" in [change.section for change in group.changes]
    [affected] = group.affected
    edit_record(desk.tool, values, expected=desk.tool.revision, by=BY)
    after = desk.version
    assert (after.number, affected.tokens_before, affected.tokens_after) == (2, before.tokens, after.tokens)
    assert after.tool_tokens > before.tool_tokens


def list_over_budget(desk: Desk) -> list[AgentPrompt]:
    rows = list_prompts_with_status(desk.workspace)
    return list(rows.filter(build_state_condition(STATE_OVER_BUDGET, [])))


def serve(desk: Desk) -> str:
    _, secret = create_key(desk.workspace, "Reception", {}, by=BY)
    return fetch(secret).text
