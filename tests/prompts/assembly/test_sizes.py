"""The table of section sizes from the moltis seed, for any prompt: largest first."""

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import (
    ContextFileInput,
    IdentityInput,
    PromptInputs,
    SkillInput,
    ToolInput,
    UserProfileInput,
)
from prompts.assembly.layouts.moltis import MOLTIS_LAYOUT
from prompts.assembly.sizes import list_section_sizes
from prompts.assembly.slots import Slots
from prompts.publishing.builds.tokens import count_tokens

RUNTIME = Slots(
    host={"host": "devbox", "os": "linux", "shell": "zsh"}, sandbox={"enabled": True, "mode": "all"}
)


def agent(**more):
    identity = IdentityInput("Bramble", "🦔", "hedgehog", "dry")
    return PromptInputs(identity=identity, user=UserProfileInput("Tomasz"), **more)


def tools(number):
    """Build the tools of an agent with that many MCP servers, each with a one-line description."""
    names = ("exec", "browser", "memory_search", *(f"server_{place}_tool" for place in range(number)))
    return tuple(
        ToolInput(name, f"What {name} does, when to use it and what it gives back." * 2)
        for name in names[:number]
    )


def files(number):
    return tuple(
        ContextFileInput(f"/srv/{place}/CLAUDE.md", "One instruction to follow here.\n" * 40)
        for place in range(number)
    )


def skills(number):
    return tuple(
        SkillInput(f"skill-{place}", "What it does and when to use it.", f"/skills/{place}")
        for place in range(number)
    )


@pytest.mark.parametrize(
    ("inputs", "fewest", "most"),
    [
        (PromptInputs(entry="minimal"), 150, 250),
        (agent(), 1_500, 2_500),
        (agent(tools=tools(8)), 4_000, 6_000),
        (agent(tools=tools(8), context_files=files(2), skills=skills(8)), 7_000, 10_000),
        (agent(tools=tools(25), context_files=files(4), skills=skills(8)), 12_000, 15_000),
    ],
    ids=["minimal", "soul + identity + guidelines", "typical with tools", "full", "large"],
)
def test_size_estimates_row(inputs, fewest, most):
    prompt = build_filled_prompt(MOLTIS_LAYOUT, inputs, RUNTIME if inputs.tools else Slots())
    assert fewest <= len(prompt.text) <= most
    # The seed assumes four characters per token.
    assert fewest / 6 <= count_tokens(prompt.text) <= most / 3


def test_the_biggest_contributors_come_first():
    many = agent(tools=tools(30), context_files=files(6))
    rows = list_section_sizes(build_filled_prompt(MOLTIS_LAYOUT, many, RUNTIME))
    assert [row.section for row in rows[:2]] == ["project_context", "tool_schemas"]
    assert [row.characters for row in rows] == sorted([row.characters for row in rows], reverse=True)


def test_the_rows_add_up_to_the_prompt():
    prompt = build_prompt(MOLTIS_LAYOUT, agent(tools=tools(3)))
    rows = list_section_sizes(prompt, count=len)
    assert sum(row.characters for row in rows) == sum(row.tokens or 0 for row in rows) == len(prompt.text)
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_tokens_are_counted_by_the_injected_counter():
    prompt = build_prompt(MOLTIS_LAYOUT, PromptInputs())
    assert {row.tokens for row in list_section_sizes(prompt)} == {None}
    assert {row.tokens for row in list_section_sizes(prompt, count=lambda _: 7)} == {7}


def test_an_absent_section_has_no_row():
    assert "skills" not in {
        row.section for row in list_section_sizes(build_prompt(MOLTIS_LAYOUT, PromptInputs()))
    }
