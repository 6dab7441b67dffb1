"""Mutation testing: each change of order, frame, condition or literal must break at least one golden test."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from prompts.assembly.builder import build_filled_prompt
from prompts.assembly.frames import leave_unframed
from prompts.assembly.layout import Layout, LayoutPart
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import TextChunk
from tests.prompts.assembly import goldens

ROOT = goldens.ROOT
pytestmark = pytest.mark.planted

# A replacement removes everything before it, including its own separator.
SAME_BY_NATURE = {"pi: replacement without its separator"}


@cache
def known(layout: str) -> list[tuple[Any, Any, str]]:
    """Return the inputs, slots and golden text of every example of a layout."""
    examples = [example for example in goldens.examples() if example.layout == layout]
    return [(*example.read(), example.golden.read_text(encoding="utf-8")) for example in examples]


def is_caught(layout: Layout) -> bool:
    return any(
        build_filled_prompt(layout, inputs, slots).text != text for inputs, slots, text in known(layout.name)
    )


def changed(layout: Layout, place: int, part: LayoutPart) -> Layout:
    return replace(layout, parts=(*layout.parts[:place], part, *layout.parts[place + 1 :]))


def mutants(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Yield the layout with each part dropped, changed, moved, or without its separator or frame."""
    parts = layout.parts
    for place, part in enumerate(parts):
        name = f"{layout.name}: {part.name}"
        yield f"{name} dropped", replace(layout, parts=(*parts[:place], *parts[place + 1 :]))
        yield (
            f"{name} says something else",
            changed(layout, place, replace(part, section=build_other_text, slot="")),
        )
        if place:
            swapped = (*parts[: place - 1], part, parts[place - 1], *parts[place + 1 :])
            yield f"{name} moved up", replace(layout, parts=swapped)
            yield f"{name} without its separator", changed(layout, place, replace(part, lead="\n"))
        if part.frame is not leave_unframed:
            yield f"{name} without its frame", changed(layout, place, replace(part, frame=leave_unframed))


def build_other_text(_: Any) -> list[TextChunk]:
    return [TextChunk("Something else.")]


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_change_of_a_layouts_parts_is_detected(name):
    layout = LAYOUTS[name]
    assert not is_caught(layout)
    unseen = {mutation for mutation, mutant in mutants(layout) if not is_caught(mutant)}
    assert unseen - SAME_BY_NATURE == set()


# File below prompts/assembly, original text, mutated text.
LITERALS = [
    (
        "tool_rules.py",
        "Do NOT use `cat`, `head`, `tail`, or `less` via shell.",
        "Do NOT use `cat` via shell.",
    ),
    (
        "tool_rules.py",
        'ToolCondition(every={"read_file"}, some=SHELL_TOOLS)',
        'ToolCondition(every={"read_file"})',
    ),
    (
        "tool_rules.py",
        'ToolCondition(every={"edit_file"}, some=SHELL_TOOLS)',
        'ToolCondition(every={"edit_file"})',
    ),
    (
        "tool_rules.py",
        'ToolCondition(some=SHELL_TOOLS, none={"read_file"})',
        "ToolCondition(some=SHELL_TOOLS)",
    ),
    ("tool_rules.py", '"powershell"}', '"pwsh"}'),
    ("tool_rules.py", '"use_skill"}', '"skill"}'),
    ("tool_rules.py", 'ToolCondition(every={"bash"}, none=SEARCH_TOOLS)', 'ToolCondition(every={"bash"})'),
    ("tool_rules.py", 'ToolCondition(every={"read", "edit"})', 'ToolCondition(every={"edit"})'),
    ("tool_rules.py", 'ToolCondition(some={"edit", "write"})', 'ToolCondition(every={"edit", "write"})'),
    ("tool_rules.py", "Be concise in your responses", "Be brief in your responses"),
    ("tool_rules.py", "lines.setdefault(line, name)", "lines[f'{line} '] = name"),
    ("sections.py", "Your vibe: {identity.vibe}.", "Vibe: {identity.vibe}."),
    ("sections.py", "You are a {identity.creature}.", "You are {identity.creature}."),
    ("sections.py", 'if identity.name else ""', 'if identity.name or identity.emoji else ""'),
    ("text.py", '"<": "&lt;", ">": "&gt;", \'"\'', '"<": "<", ">": "&gt;", \'"\''),
    ("text.py", "re.IGNORECASE", "re.ASCII"),
    ("dates.py", "at.hour % 12 or 12", "at.hour % 12"),
    ("dates.py", '"March"', '"Mar"'),
    ("task_text.py", "(done)", "(finished)"),
    ("task_text.py", "'→' if index == first_open else '○'", "'○' if index == first_open else '→'"),
    ("layouts/nova.py", 'tag_frame("Memories")', 'tag_frame("Memory")'),
    ("layouts/nova.py", "Your working directory is:", "Your directory is:"),
    ("layouts/opal.py", "Working directory: {", "Working dir: {"),
    ("layouts/opal.py", "if inputs.is_sub_agent:", "if False:"),
    ("layouts/pi.py", "Current working directory: {", "Working directory: {"),
    (
        "layouts/pi.py",
        'NO_TOOLS_TEXT = "Available tools:", "Guidelines:", "(none)"',
        'NO_TOOLS_TEXT = "Available tools:", "Guidelines:", "none"',
    ),
    (
        "layouts/pi.py",
        "for text in (inputs.append, inputs.instructions)",
        "for text in (inputs.instructions, inputs.append)",
    ),
    ("skill_listing.py", "    <name>{", "  <name>{"),
    ("skill_listing.py", "else READ_TOOL in slots.tools", "else True"),
    ("layouts/moltis.py", "The user's name is {", "User: {"),
    ("layouts/moltis.py", 'heading_frame("## Soul")', 'heading_frame("## Personality")'),
    ("tool_guidance.py", 'tool.name.startswith("memory")', 'tool.name.startswith("mem0ry")'),
    ("tool_guidance.py", "160", "159"),
    ("runtime_lines.py", '" | ".join', '", ".join'),
    (
        "layouts/ptc.py",
        'if inputs.mode == "agent" else [TextChunk(BASE_RULES)]',
        "if inputs.mode else [TextChunk(BASE_RULES)]",
    ),
    ("layouts/ptc.py", 'return ENDING_TOOL_BLOCKS if inputs.mode == "agent" else []', "return []"),
    ("data_inventory.py", 'HIDDEN_VALUE = "[Hidden]"', 'HIDDEN_VALUE = "[Firewalled]"'),
    ("data_inventory.py", 'return name.startswith("_")', "return False"),
    ("layouts/dramatis.py", 'tag_frame("further-instructions")', 'tag_frame("more")'),
    ("layouts/dramatis.py", "if not skill.disable_model_invocation", "if skill.name"),
    ("layouts/dramatis_slots.py", "Current time: {", "Time: {"),
    ("budget.py", "return body, 0", "return body[:-1], 0"),
]


@pytest.fixture(scope="module")
def exits(tmp_path_factory) -> dict[str, int]:
    """Return the exit codes of the golden check for the unchanged sources and for each mutation.

    A single process checks all mutations on a copy of the sources, one after the other, without writing
    bytecode, which could outlive a mutation.
    """
    folder = tmp_path_factory.mktemp("mutants")
    (folder / "prompts").mkdir()
    shutil.copy(ROOT / "prompts" / "__init__.py", folder / "prompts")
    kept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "prompts" / "assembly", folder / "prompts" / "assembly", ignore=kept)
    command = [sys.executable, "-B", "-m", "tests.prompts.assembly.mutations", str(folder)]
    mutations = json.dumps([["", "", ""], *LITERALS])
    done = subprocess.run(
        command, input=mutations, capture_output=True, text=True, check=True, timeout=300, cwd=ROOT
    )
    exit_codes: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return exit_codes


@pytest.mark.hard
@pytest.mark.parametrize(
    ("file", "original", "mutated"), LITERALS, ids=[f"{row[0]}: {row[2][:40]}" for row in LITERALS]
)
def test_every_change_of_a_rule_or_a_literal_is_detected(file, original, mutated, exits):
    text = (ROOT / "prompts" / "assembly" / file).read_text(encoding="utf-8")
    assert original in text, "The original text was not found: update the mutation."
    assert exits[f"{file}: {mutated}"] != 0


@pytest.mark.hard
def test_unchanged_sources_are_not_accused(exits):
    assert exits[": "] == 0
