"""Every key of the published input schema can be set by a record, a setting, a file or a request field."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from personas.models import Agent
from prompts.assembly.call_inputs import apply_call_inputs
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import get_field_default, parse_dataclass
from prompts.assembly.slots import Slots
from prompts.publishing.inputs import collect_inputs
from prompts.publishing.settings.services import put_settings
from prompts.serving.render_api import CALL_INPUT_SCHEMAS
from skills.models import AgentSource
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_profile,
    make_responsibility,
    make_skill,
    make_soul,
    make_source,
    make_tool,
    refreshed,
)
from tests.skills.library.skill_stage import choose_source

pytestmark = pytest.mark.django_db
SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "inputs.schema.json").read_text(encoding="utf-8"))
# Set for every record: kind, id and revision; only files have a path.
ORIGIN = "Origin"


def list_schema_keys() -> set[str]:
    """List the keys of the schema as "Class.field"."""
    return {
        f"{name}.{key}" for name, definition in SCHEMA["$defs"].items() for key in definition["properties"]
    }


def get_schema_name(value: Any) -> str:
    """Return the name of the class in the published schema."""
    return type(value).__name__.removesuffix("Input")


def iterate_set_keys(value: Any) -> Iterator[str]:
    """Yield the fields that differ from their default, as "Class.field"."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        yield from (f"{get_schema_name(value)}.{name}" for name, item in value._asdict().items() if item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            item = getattr(value, field.name)
            default = get_field_default(type(value), field.name)
            if default is MISSING or item != default:
                yield f"{get_schema_name(value)}.{field.name}"
                yield from iterate_set_keys(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from iterate_set_keys(item)


@pytest.fixture
def collected(workspace, tmp_path, settings) -> list[PromptInputs]:
    """The inputs of two agents for which everything is set that records, settings and files can set."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    for path, text in {
        ".sf/agent/SYSTEM.md": "Base.\n",
        ".sf/APPEND_SYSTEM.md": "Append.\n",
        "AGENTS.md": "Context.\n",
    }.items():
        (tmp_path / "pi" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pi" / path).write_text(text, encoding="utf-8")
    (tmp_path / "home" / ".moltis").mkdir(parents=True)
    (tmp_path / "home" / ".moltis" / "TOOLS.md").write_text("Tools.\n", encoding="utf-8")
    channel = make_channel(workspace, "deck", formatting="Plain text.")
    identity = make_identity(
        workspace, display_name="Fox", emoji="🦊", creature="fox", vibe="calm", text="A fox."
    )
    profile = make_profile(
        workspace, display_name="Ada", timezone="Europe/Paris", location="Paris", notes="Kind."
    )
    tool = make_tool(
        workspace,
        "read",
        description="Read.",
        snippet="Read",
        guidelines="Read first.",
        parameters='{"type": "object"}',
        signature="read(path :string) -> :string",
    )
    planner = make_tool(workspace, "plan", description="Plan.")
    parent = make_agent(workspace, "parent")
    agent = make_agent(
        workspace,
        "pilot",
        layout="pi",
        parent=parent,
        identity=identity,
        soul=make_soul(workspace, text="Be brave."),
        user_profile=profile,
        instructions="Steer.",
        tools=[tool],
        planning_tools=[planner],
        channels=[channel],
        directories=["/srv/charts"],
        capabilities=["files"],
        documentation_main="/docs",
        documentation_additional="/more",
        documentation_examples="/examples",
    )
    make_responsibility(agent, "Watch", text="Watch the sea.")
    make_memory(workspace, "Likes tea.")
    make_skill(workspace, "brew", agents=[agent], disable_model_invocation=True)
    put_settings(
        workspace,
        {
            "mission": "Sail.",
            "entry": "simple",
            "mode": "single_turn",
            "native_tools": False,
            "total_characters": 9_000,
            "signature": "(id :int)",
            "sample_data": '{"id": 1}',
            "hidden": ["pin"],
            "list_sample": 2,
            "string_truncate": 9,
            "omit_reference": True,
            "per_file": 99,
            "all_files": 999,
            "section_limits": {"skills": 50},
        },
        expected=0,
        by=BY,
        agent=agent,
    )
    source = make_source(workspace, tmp_path / "pi", "Pi files", location="/home/user")
    refreshed(source)
    choose_source(agent, source, "pi")
    other = make_agent(workspace, "other", layout="moltis", channels=[channel])
    home = make_source(workspace, tmp_path / "home", "Home", location="/home/user")
    refreshed(home)
    choose_source(other, home, "moltis")
    AgentSource.objects.in_workspace(workspace).filter(context__agent=other).update(scope="home")
    agents = list(Agent.objects.in_workspace(workspace).filter(slug__in=["pilot", "other"]))
    return [one.inputs for one in collect_inputs(workspace, agents, at=timezone.now())]


def test_every_key_of_the_schema_is_set_by_records_settings_and_files(collected):
    reached = {key for inputs in collected for key in iterate_set_keys(inputs)}
    assert list_schema_keys() - reached == set()


def test_a_key_that_nothing_sets_is_found(collected):
    """As if collection did not pass the directories and the documentation, as it once did not."""
    orphaned = [replace(inputs, directories=(), documentation=None) for inputs in collected]
    reached = {key for inputs in orphaned for key in iterate_set_keys(inputs)}
    assert list_schema_keys() - reached == {
        "PromptInputs.directories",
        "PromptInputs.documentation",
        *(f"Documentation.{name}" for name in ("main", "additional", "examples")),
    }


def test_the_fields_of_a_request_change_the_inputs():
    """Each field of the request that names an input changes it."""
    values: dict[str, Any] = {
        "data": '{"id": 1}',
        "signature": "(id :int)",
        "hidden": ["pin"],
        "mission": "Sail.",
        "limits": {"total": 500},
        "working_directory": "/srv",
        "directories": ["/mnt"],
        "mode": "single_turn",
        "entry": "minimal",
        "native_tools": False,
    }
    assert values.keys() == CALL_INPUT_SCHEMAS.keys()
    for name, value in values.items():
        slots = parse_dataclass(Slots, {name: value})
        assert apply_call_inputs(PromptInputs(), slots) != PromptInputs(), name
