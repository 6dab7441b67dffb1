"""Planted changes of order, frame, condition and literal: each must turn at least one golden text red."""

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

# A replacement clears all that stands before it, its own separator included.
SAME_BY_NATURE = {"pi: replacement without its separator"}


@cache
def known(layout: str) -> list[tuple[Any, Any, str]]:
    """Inputs, slots and golden text of every example of a layout."""
    held = [example for example in goldens.examples() if example.layout == layout]
    return [(*example.read(), example.golden.read_text(encoding="utf-8")) for example in held]


def is_caught(layout: Layout) -> bool:
    return any(
        build_filled_prompt(layout, inputs, slots).text != text for inputs, slots, text in known(layout.name)
    )


def changed(layout: Layout, place: int, part: LayoutPart) -> Layout:
    return replace(layout, parts=(*layout.parts[:place], part, *layout.parts[place + 1 :]))


def mutants(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Every part dropped, moved, unframed, glued to its neighbour, or made to speak in vain."""
    parts = layout.parts
    for place, part in enumerate(parts):
        name = f"{layout.name}: {part.name}"
        yield f"{name} dropped", replace(layout, parts=(*parts[:place], *parts[place + 1 :]))
        yield (
            f"{name} says something else",
            changed(layout, place, replace(part, section=other_words, slot="")),
        )
        if place:
            swapped = (*parts[: place - 1], part, parts[place - 1], *parts[place + 1 :])
            yield f"{name} moved up", replace(layout, parts=swapped)
            yield f"{name} without its separator", changed(layout, place, replace(part, lead="\n"))
        if part.frame is not leave_unframed:
            yield f"{name} without its frame", changed(layout, place, replace(part, frame=leave_unframed))


def other_words(_: Any) -> list[TextChunk]:
    return [TextChunk("Something else.")]


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_change_of_a_layouts_parts_goes_unseen(name):
    layout = LAYOUTS[name]
    assert not is_caught(layout)
    unseen = {said for said, mutant in mutants(layout) if not is_caught(mutant)}
    assert unseen - SAME_BY_NATURE == set()


# File below prompts/assembly, what stands there, what is planted in its place.
LITERALS = [
    ("rules.py", "Do NOT use `cat`, `head`, `tail`, or `less` via shell.", "Do NOT use `cat` via shell."),
    ("rules.py", 'Needs(every={"read_file"}, some=SHELLS)', 'Needs(every={"read_file"})'),
    ("rules.py", 'Needs(every={"edit_file"}, some=SHELLS)', 'Needs(every={"edit_file"})'),
    ("rules.py", 'Needs(some=SHELLS, none={"read_file"})', "Needs(some=SHELLS)"),
    ("rules.py", '"powershell"}', '"pwsh"}'),
    ("rules.py", '"use_skill"}', '"skill"}'),
    ("rules.py", 'Needs(every={"bash"}, none=EXPLORERS)', 'Needs(every={"bash"})'),
    ("rules.py", 'Needs(every={"read", "edit"})', 'Needs(every={"edit"})'),
    ("rules.py", 'Needs(some={"edit", "write"})', 'Needs(every={"edit", "write"})'),
    ("rules.py", "Be concise in your responses", "Be brief in your responses"),
    ("rules.py", "told.setdefault(line, name)", "told[f'{line} '] = name"),
    ("sections.py", "Your vibe: {identity.vibe}.", "Vibe: {identity.vibe}."),
    ("sections.py", "You are a {identity.creature}.", "You are {identity.creature}."),
    ("sections.py", 'if identity.name else ""', 'if identity.name or identity.emoji else ""'),
    ("text.py", '"<": "&lt;", ">": "&gt;", \'"\'', '"<": "<", ">": "&gt;", \'"\''),
    ("text.py", "re.IGNORECASE", "re.ASCII"),
    ("clock.py", "moment.hour % 12 or 12", "moment.hour % 12"),
    ("clock.py", '"March"', '"Mar"'),
    ("task_words.py", "(done)", "(finished)"),
    ("task_words.py", "'→' if place == following else '○'", "'○' if place == following else '→'"),
    ("layouts/nova.py", 'tag("Memories")', 'tag("Memory")'),
    ("layouts/nova.py", "Your working directory is:", "Your directory is:"),
    ("layouts/opal.py", "Working directory: {", "Working dir: {"),
    ("layouts/opal.py", "return None if inputs.is_sub_agent else {}", "return {}"),
    ("layouts/pi.py", "Current working directory: {", "Working directory: {"),
    (
        "layouts/pi.py",
        'NO_TOOLS = "Available tools:", "Guidelines:", "(none)"',
        'NO_TOOLS = "Available tools:", "Guidelines:", "none"',
    ),
    (
        "layouts/pi.py",
        "for text in (inputs.append, inputs.instructions)",
        "for text in (inputs.instructions, inputs.append)",
    ),
    ("skill_listing.py", "    <name>{", "  <name>{"),
    ("skill_listing.py", "else READ in slots.tools", "else True"),
    ("layouts/moltis.py", "The user's name is {", "User: {"),
    ("layouts/moltis.py", 'heading("## Soul")', 'heading("## Personality")'),
    ("tool_guidance.py", 'tool.name.startswith("memory")', 'tool.name.startswith("mem0ry")'),
    ("tool_schemas.py", "160", "159"),
    ("runtime_lines.py", '" | ".join', '", ".join'),
    ("layouts/ptc.py", 'if inputs.mode == "agent" else [Piece(RULES)]', "if inputs.mode else [Piece(RULES)]"),
    ("layouts/ptc.py", 'return ENDINGS if inputs.mode == "agent" else []', "return []"),
    ("inventory.py", 'HIDDEN = "[Hidden]"', 'HIDDEN = "[Firewalled]"'),
    ("inventory.py", 'return name.startswith("_")', "return False"),
    ("layouts/dramatis.py", 'tag("further-instructions")', 'tag("more")'),
    ("layouts/dramatis.py", "if not skill.disable_model_invocation", "if skill.name"),
    ("dramatis_calls.py", "Current time: {", "Time: {"),
    ("budget.py", "return body, 0", "return body[:-1], 0"),
]


@pytest.fixture(scope="module")
def exits(tmp_path_factory) -> dict[str, int]:
    """The exit of the golden check for the sources as they are, and with each change planted in them.

    One program checks them all, so that Python starts once: a copy of the sources is changed, loaded, checked
    and put back. It stays away from the sources in use, and keeps no bytecode that could outlive a change.
    """
    folder = tmp_path_factory.mktemp("mutants")
    (folder / "prompts").mkdir()
    shutil.copy(ROOT / "prompts" / "__init__.py", folder / "prompts")
    kept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "prompts" / "assembly", folder / "prompts" / "assembly", ignore=kept)
    command = [sys.executable, "-B", "-m", "tests.prompts.assembly.mutations", str(folder)]
    told = json.dumps([["", "", ""], *LITERALS])
    done = subprocess.run(
        command, input=told, capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.hard
@pytest.mark.parametrize(
    ("file", "stands", "planted"), LITERALS, ids=[f"{row[0]}: {row[2][:40]}" for row in LITERALS]
)
def test_no_change_of_a_rule_or_a_literal_goes_unseen(file, stands, planted, exits):
    text = (ROOT / "prompts" / "assembly" / file).read_text(encoding="utf-8")
    assert stands in text, "The planted fault has lost its place: write it anew."
    assert exits[f"{file}: {planted}"] != 0


@pytest.mark.hard
def test_unchanged_sources_are_not_accused(exits):
    assert exits[": "] == 0
