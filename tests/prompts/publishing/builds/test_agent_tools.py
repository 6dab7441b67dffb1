"""Agents as tools: derived names, descriptions and signatures, and rebuilds when the called agent changes."""

import json

import pytest

from personas.errors import InvalidInput, RecordInUse
from personas.models import Revision, Tool
from personas.records.services import archive_record, create_record, edit_record
from prompts.models import PromptSettings
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.inputs.agent_tools import find_result_type, get_first_sentence
from prompts.publishing.versions.selectors import get_lockfile_parts
from tests.factories import BY, make_agent, make_channel, make_tool
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db
MISSION = "Sort the inbox of the user. Then stop.\n\nReturn format: {summary :string, _ids [:int]}"
BLOCK = """### email_agent
```
email_agent(prompt :string) -> {summary :string, _ids [:int]}
```
Specialized agent for email processing."""


@pytest.fixture
def email_agent(workspace):
    return make_agent(
        workspace,
        "email-agent",
        layout="ptc",
        instructions=MISSION,
        description="Specialized agent for email processing.",
    )


@pytest.fixture
def tool(workspace, email_agent):
    return create_record(Tool, workspace, {"agent": email_agent}, by=BY)


def edit(record, **values):
    record = type(record).objects.in_workspace(record.workspace_id).get(pk=record.pk)
    return edit_record(record, values, expected=record.revision, by=BY)


def heading_of(text, name):
    """Return the last second-level heading above the tool."""
    return [line for line in text[: text.index(f"### {name}")].splitlines() if line.startswith("## ")][-1]


def test_a_planning_agent_is_shown_as_in_the_specification(workspace, tool):
    stage = make_stage(workspace, layout="ptc", planning_tools=[tool])
    text = stage.fetch().text
    assert BLOCK in text
    assert heading_of(text, "email_agent") == "## Tools for planning (do not call)"


def test_an_active_agent_is_a_tool_that_can_be_called(workspace, tool):
    stage = make_stage(workspace, layout="ptc", tools=[tool])
    text = stage.fetch().text
    assert BLOCK in text
    assert heading_of(text, "email_agent") == "## Tools you can call"


def test_other_layouts_get_a_definition_with_one_text(workspace, tool):
    definition = json.loads(make_stage(workspace, tools=[tool]).fetch().tools)[0]
    assert definition["name"] == "email_agent"
    assert definition["description"] == "Specialized agent for email processing."
    assert '"required": ["prompt"]' in json.dumps(definition)


def test_explicit_fields_win(workspace, tool):
    edit(tool, description="Reads mail.", signature="mail(q :string) -> :map", name="mail")
    stage = make_stage(workspace, layout="ptc", tools=[tool])
    text = stage.fetch().text
    assert "### mail\n```\nmail(q :string) -> :map\n```\nReads mail." in text
    assert "Specialized" not in text
    edit(tool, description="", snippet="Mail.", signature="", parameters='{"type": "object"}')
    rebuild_agents(workspace, [stage.agent.pk])
    assert "### mail\n```\nmail() -> :any\n```\nMail." in stage.fetch().text


@pytest.mark.slow
def test_without_a_description_the_first_sentence_of_the_prompt_is_used(workspace, email_agent, tool):
    stage = make_stage(workspace, layout="ptc", tools=[tool])
    edit(email_agent, description="")
    rebuild_agents(workspace, [stage.agent.pk])
    assert "\n```\nSort the inbox of the user.\n" in stage.fetch().text
    create_record(
        PromptSettings, workspace, {"agent": email_agent, "mission": "Answer mail! Return format: x"}, by=BY
    )
    rebuild_agents(workspace, [stage.agent.pk])
    text = stage.fetch().text
    assert "\n```\nAnswer mail!\n" in text
    assert "email_agent(prompt :string) -> :any" in text


@pytest.fixture
def stage(workspace, tool):
    """An agent that has the tool for planning."""
    return make_stage(workspace, layout="ptc", planning_tools=[tool])


@pytest.fixture
def commit(django_capture_on_commit_callbacks):
    """Return a context manager that runs the hooks of a commit at its end; they rebuild the prompts."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def test_a_change_of_the_called_agent_builds_a_version(stage, commit, email_agent, tool):
    before = stage.prompt.latest
    with commit():
        edit(email_agent, description="Answers mail.")
    after = stage.prompt.latest
    assert after.number == before.number + 1
    assert "Answers mail." in stage.fetch().text
    key = f"tool:{tool.pk}@{tool.revision}"
    assert get_lockfile_parts(after)[key] != get_lockfile_parts(before)[key]


def test_a_change_that_leaves_the_derived_text_builds_none(stage, commit, email_agent):
    before = stage.prompt.latest_id
    with commit():
        edit(email_agent, working_directory="/srv")
    assert stage.prompt.latest_id == before


def test_a_mission_of_the_called_agent_builds_a_version(workspace, stage, commit, email_agent):
    mission = "Go.\nReturn format: [:int]"
    with commit():
        create_record(PromptSettings, workspace, {"agent": email_agent, "mission": mission}, by=BY)
    assert "email_agent(prompt :string) -> [:int]" in stage.fetch().text


@pytest.mark.slow
def test_the_signature_of_a_ptc_agent_has_the_result_type(workspace, stage, commit, email_agent):
    """Its prompt ends with this type as `Return format: …`, unless the mission has such a line."""
    values = {"agent": email_agent, "mission": "Sort mail.", "signature": "(box :string) -> {sorted :int}"}
    with commit():
        settings = create_record(PromptSettings, workspace, values, by=BY)
    assert "email_agent(prompt :string) -> {sorted :int}" in stage.fetch().text
    with commit():
        settings = edit(settings, signature="(box :string)")
    assert "email_agent(prompt :string) -> :any" in stage.fetch().text
    with commit():
        edit(settings, mission="Go.\nReturn format: :int", signature="() -> :map")
    assert "email_agent(prompt :string) -> :int" in stage.fetch().text


def test_the_signature_of_another_layout_is_not_in_its_prompt_and_gives_no_type(
    workspace, stage, commit, email_agent
):
    with commit():
        edit(email_agent, layout="nova", instructions="Sort mail.")
        create_record(PromptSettings, workspace, {"agent": email_agent, "signature": "() -> :int"}, by=BY)
    assert "email_agent(prompt :string) -> :any" in stage.fetch().text


def test_an_agent_cannot_call_itself(workspace, email_agent, tool):
    for field in ("tools", "planning_tools"):
        with pytest.raises(InvalidInput, match="cannot call itself"):
            edit(email_agent, **{field: [tool]})
    other = make_tool(workspace, "other")
    edit(email_agent, tools=[other])
    with pytest.raises(InvalidInput, match="cannot call itself"):
        edit(other, agent=email_agent)


def test_two_agents_can_call_each_other(workspace, email_agent, tool):
    channel = make_channel(workspace)
    pilot = make_agent(workspace, "pilot", layout="ptc", tools=[tool], channels=[channel])
    back = create_record(Tool, workspace, {"agent": pilot}, by=BY)
    edit(email_agent, tools=[back], channels=[channel])
    assert len(rebuild_agents(workspace, [pilot.pk, email_agent.pk]).versions) == 2


def test_a_called_agent_cannot_be_archived(workspace, email_agent, tool):
    pilot = make_agent(workspace, "pilot", tools=[tool])
    with pytest.raises(RecordInUse, match="Pilot"):
        archive_record(email_agent, by=BY)
    edit(pilot, tools=[])
    assert archive_record(email_agent, by=BY).is_archived


def test_the_agent_is_in_the_history(workspace, email_agent, tool):
    edit(tool, agent=None)
    rows = Revision.objects.in_workspace(workspace).filter(kind="tool").order_by("number")
    assert [row.data["agent"] for row in rows] == [email_agent.pk, None]


@pytest.mark.parametrize(
    ("slug", "name"), [("email-agent", "email_agent"), ("mira", "mira"), ("3d-printer", "_3d_printer")]
)
def test_the_name_comes_from_the_slug(workspace, slug, name):
    assert create_record(Tool, workspace, {"agent": make_agent(workspace, slug)}, by=BY).name == name


@pytest.mark.usefixtures("email_agent")
def test_the_api_creates_a_tool_for_an_agent(admin, key_for, workspace, alice, elsewhere):
    answer = admin.post("tools", {"agent": "email-agent"})
    assert answer.status_code == 201, answer.content
    assert (answer.json()["name"], answer.json()["agent"]) == ("email_agent", "email-agent")
    nameless = admin.post("tools", {"description": "Nameless."})
    assert (nameless.status_code, nameless.json()["errors"][0]["pointer"]) == (422, "/name")
    make_agent(elsewhere, "spy")
    assert admin.post("tools", {"name": "spy", "agent": "spy"}).status_code == 422
    limited = key_for(workspace, alice, agents=["email-agent"])
    assert limited.post("tools", {"name": "own", "agent": "email-agent"}).status_code == 403


def test_the_page_creates_and_shows_a_tool_for_an_agent(as_alice, workspace, email_agent):
    home = f"/w/{workspace.slug}/tools/"
    assert as_alice.post(f"{home}new/", {"agent": email_agent.pk}).status_code == 302
    page = as_alice.get(f"{home}email_agent/").content.decode()
    assert f"/w/{workspace.slug}/agents/email-agent/" in page
    assert "Derived from the agent" in page
    assert as_alice.post(f"{home}new/", {"description": "Nameless."}).status_code == 422


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ""),
        ("# Title\n\nDo it. Then rest.", "Do it."),
        ("Uses v1.2 of\nthe tool! Yes.", "Uses v1.2 of the tool!"),
        ("No full stop\n\nNext paragraph.", "No full stop"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_first_sentences(text, sentence):
    assert get_first_sentence(text) == sentence


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Go.", ":any"),
        ("Return format: {a :int,b [:string]}", "{a :int, b [:string]}"),
        ("Return format: :int\nReturn format: whatever you like", ":int"),
        ("Say: Return format: :int", ":any"),
    ],
)
def test_result_types(text, result):
    assert find_result_type(text) == result
