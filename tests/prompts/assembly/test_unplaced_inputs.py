"""Slots that a layout does not use are dropped without an effect on the prompt."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings

from prompts.assembly.builder import build_filled_prompt
from prompts.assembly.call_inputs import apply_call_inputs
from prompts.assembly.inputs import PromptInputs, Text
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import CallTool, PreviousError, Session, Slots, TaskInput
from prompts.assembly.unplaced_inputs import LAYOUT_SLOTS, SLOT_INPUTS, drop_unused_slots
from tests.example_counts import examples
from tests.prompts.assembly.strategies import inputs, slots

CALL_INPUTS = Slots(
    data='{"ship":{"name":"Iris","berth":7}}',
    signature="(ship {name :string}) -> :string",
    hidden=("berth",),
    mission="Find {{ship.name}}.",
    working_directory="/srv/harbour",
    tool_definitions=(CallTool("dock", "Dock a ship."),),
)
ALL_SLOTS = replace(
    CALL_INPUTS,
    host={"os": "linux", "home": "/home/iris"},
    sandbox={"enabled": True},
    session=Session("s-1"),
    task=TaskInput(7, "Load the ship"),
    is_background=True,
    previous_error=PreviousError("Timeout"),
    append="Be brief.",
    replace="Do only this.",
)


def render(layout, prompt_inputs, call_slots):
    prompt = build_filled_prompt(layout, apply_call_inputs(prompt_inputs, call_slots), call_slots)
    return prompt.text, prompt.tools


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_prompt_is_the_same_without_the_slots_that_its_layout_does_not_use(layout):
    prompt_inputs = PromptInputs(mission=Text("Wait."), base=Text("You help."))
    used, dropped = drop_unused_slots(layout, ALL_SLOTS)
    assert render(layout, prompt_inputs, used) == render(layout, prompt_inputs, ALL_SLOTS)
    assert all(not getattr(used, name) for name in dropped)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_not_dropped_changes_the_prompt(layout):
    """Otherwise the ledger would store slots for nothing."""
    used, _ = drop_unused_slots(layout, ALL_SLOTS)
    prompt_inputs = PromptInputs()
    full = render(layout, prompt_inputs, used)
    # Each slot alone as well, because `replace` hides others.
    alone = {
        name: replace(Slots(), **{name: getattr(ALL_SLOTS, name)}) for name in LAYOUT_SLOTS | set(SLOT_INPUTS)
    }
    empty = render(layout, prompt_inputs, Slots())
    without_effect = [
        name
        for name, one in alone.items()
        if getattr(used, name)
        and render(layout, prompt_inputs, one) == empty
        and render(layout, prompt_inputs, replace(used, **{name: getattr(Slots(), name)})) == full
    ]
    assert without_effect == []


@pytest.mark.slow
@settings(max_examples=examples(25, hard=200), deadline=None)
@given(inputs, slots)
def test_it_is_the_same_for_all_inputs_and_slots(prompt_inputs, call_slots):
    for layout in LAYOUTS.values():
        used, _ = drop_unused_slots(layout, call_slots)
        assert render(layout, prompt_inputs, used) == render(layout, prompt_inputs, call_slots)


def test_every_slot_is_classified():
    """A new slot must be added to one of the tables, or to those that affect every layout."""
    always = {"now", "timezone", "zone", "tools", "limits", "entry", "native_tools", "tool_definitions"}
    names = {field.name for field in fields(Slots)}
    assert names == always | LAYOUT_SLOTS | set(SLOT_INPUTS) | {"messages"}
