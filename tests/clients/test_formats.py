"""Prompts in the formats of model providers, and prompts filled with another time."""

from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dramatis_client import NotFillable, Prompt
from dramatis_client.prompts import build_fallback_prompt, parse_prompt
from dramatis_client.time_slots import TIME_FORMATS, TIMELESS_SLOTS
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import SLOT_RENDERERS
from tests.clients.stub_server import prompt_response

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
LEVELS = {"Be ": "release", "bra": "refresh", "ve. ": "channel", "It is ten.": "turn"}
BLOCKS = [
    {"text": text, "volatility": level, "is_cacheable": level != "turn"} for text, level in LEVELS.items()
]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "weather", "description": "Look it up.", "parameters": SCHEMA}, {"name": "stop"}]
MESSAGES = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
EMPTY_SCHEMA = {"type": "object", "properties": {}}


def build_prompt(text: str, **changes: Any) -> Prompt:
    return parse_prompt(prompt_response(text, 3, **changes).body, "", NOON)


@pytest.fixture
def prompt() -> Prompt:
    return build_prompt("".join(LEVELS), blocks=BLOCKS, tools=TOOLS, messages=MESSAGES)


def test_openai_messages_and_tools(prompt):
    assert prompt.to_openai() == [{"role": "system", "content": prompt.text}, *MESSAGES]
    assert prompt.to_openai(role="developer")[0]["role"] == "developer"
    functions = [
        {"name": "weather", "description": "Look it up.", "parameters": SCHEMA},
        {"name": "stop", "description": "", "parameters": EMPTY_SCHEMA},
    ]
    assert prompt.to_openai_tools() == [{"type": "function", "function": one} for one in functions]
    assert prompt.to_responses_tools() == [{"type": "function", "strict": False, **one} for one in functions]


def list_marked(blocks: list[dict[str, Any]]) -> list[str]:
    return [block["text"] for block in blocks if "cache_control" in block]


@pytest.mark.parametrize(
    ("max_marks", "marked"),
    [(0, []), (1, ["ve. "]), (2, ["bra", "ve. "]), (3, ["Be ", "bra", "ve. "]), (9, ["Be ", "bra", "ve. "])],
)
def test_anthropic_marks_are_at_the_last_cacheable_ends(max_marks, marked, prompt):
    blocks = prompt.to_anthropic(max_marks=max_marks)
    assert list_marked(blocks) == marked
    assert "".join([block["text"] for block in blocks]) == prompt.text


def test_a_text_that_is_cacheable_to_its_end_is_marked_there():
    prompt = build_prompt(
        "Be brave.", blocks=[{"text": "Be brave.", "volatility": "user", "is_cacheable": True}]
    )
    assert list_marked(prompt.to_anthropic()) == ["Be brave."]
    volatile = build_prompt(
        "It is.", blocks=[{"text": "It is.", "volatility": "turn", "is_cacheable": False}]
    )
    assert list_marked(volatile.to_anthropic()) == []
    with pytest.raises(ValueError, match="max_marks"):
        prompt.to_anthropic(max_marks=-1)


def test_anthropic_gets_no_empty_block_and_its_own_tools(prompt):
    empty = build_prompt(
        "Be.", blocks=[{"text": "Be.", "volatility": "user", "is_cacheable": True}, BLOCKS[0] | {"text": ""}]
    )
    assert [block["text"] for block in empty.to_anthropic()] == ["Be."]
    assert list_marked(empty.to_anthropic()) == ["Be."]
    assert prompt.to_anthropic_tools() == [
        {"name": "weather", "description": "Look it up.", "input_schema": SCHEMA},
        {"name": "stop", "description": "", "input_schema": EMPTY_SCHEMA},
    ]


def test_a_changed_conversion_does_not_change_the_prompt(prompt):
    prompt.to_anthropic_tools()[0]["input_schema"]["properties"].clear()
    prompt.to_anthropic()[2]["cache_control"].clear()
    assert prompt.to_anthropic_tools()[0]["input_schema"] == SCHEMA
    assert prompt.to_anthropic()[2]["cache_control"] == {"type": "ephemeral"}


def test_langchain_messages_are_objects(prompt, monkeypatch):
    module: Any = ModuleType("langchain_core.messages")
    for name in ("SystemMessage", "HumanMessage", "AIMessage"):
        setattr(module, name, lambda content, name=name: SimpleNamespace(name=name, content=content))
    monkeypatch.setitem(__import__("sys").modules, "langchain_core.messages", module)
    system, human, assistant = prompt.to_langchain()
    assert (system.name, system.content) == ("SystemMessage", prompt.text)
    assert (human.name, human.content, assistant.name) == ("HumanMessage", "Hello.", "AIMessage")
    assert prompt.to_langchain(max_marks=1)[0].content == prompt.to_anthropic()
    monkeypatch.setitem(__import__("sys").modules, "langchain_core.messages", None)
    with pytest.raises(ImportError, match=r"dramatis-client\[langchain\]"):
        prompt.to_langchain()


def test_trace_metadata_has_no_text(prompt):
    assert prompt.trace_metadata() == {
        "gen_ai.prompt.name": "pilot.deck",
        "gen_ai.prompt.version": "3",
        "gen_ai.agent.name": "pilot",
        "dramatis.label": "production",
        "dramatis.digest": prompt.digest,
        "dramatis.ledger_id": 43,
    }
    fallback = build_fallback_prompt("pilot", "deck", "production", "Secret.", NOON)
    assert fallback.trace_metadata() == {
        "gen_ai.prompt.name": "pilot.deck",
        "gen_ai.agent.name": "pilot",
        "dramatis.label": "production",
        "dramatis.is_fallback": True,
    }


# --- another time; test_live.py compares it with the real server ---------------------------------------


def build_clock_prompt(slot: str | None, shown: str, **slots: str) -> Prompt:
    text = f"Be brave.\n\n<now>\n{shown}\n</now>\n\nBye."
    start, end = text.index("\n\n<now>"), text.index("\n\nBye.")
    ranges = [(0, start, None), (start, end, slot), (end, len(text), None)]
    segments = [
        {"section": "x", "volatility": "turn", "range": [first, last], "slot": name, "is_cacheable": False}
        for first, last, name in ranges
    ]
    blocks = [
        {"text": text[:start], "volatility": "release", "is_cacheable": True},
        {"text": text[start:], "volatility": "turn", "is_cacheable": False},
    ]
    return build_prompt(text, segments=segments, blocks=blocks, slots={"now": NOON.isoformat(), **slots})


def test_the_time_is_replaced_and_ranges_move(prompt):
    prompt = build_clock_prompt(
        "dramatis.now", "Current time: Saturday, March 7, 2026 at 12:00 (UTC)", zone="UTC"
    )
    filled = prompt.fill(now=datetime(2026, 12, 23, 9, 5, tzinfo=UTC))
    assert "Current time: Wednesday, December 23, 2026 at 09:05 (UTC)\n</now>" in filled.text
    assert len(filled.text) > len(prompt.text)
    assert "".join([block.text for block in filled.blocks]) == filled.text
    assert [block.is_cacheable for block in filled.blocks] == [True, False]
    assert filled.text[filled.segments[2].start : filled.segments[2].end] == "\n\nBye."
    assert filled.segments[-1].end == len(filled.text)
    assert (filled.served_digest, filled.ledger_id) == (prompt.served_digest, prompt.ledger_id)
    assert filled.slots["now"] == "2026-12-23T09:05:00+00:00"
    assert filled.fill(now=NOON) == prompt


def test_a_text_without_time_stays_as_it_is(prompt):
    assert prompt.fill(now=NOON) is prompt
    assert build_fallback_prompt("a", "b", "c", "d", NOON).fill(now=NOON).text == "d"


@pytest.mark.parametrize(
    ("slot", "shown", "slots"),
    [
        ("dramatis.later", "Current time: Saturday, March 7, 2026 at 12:00 (UTC)", {"zone": "UTC"}),
        ("dramatis.now", "Current time: Sat, March 7, 2026 at 12:00 (UTC)", {"zone": "UTC"}),
        ("dramatis.now", "Current time: Saturday, March 7, 2026 at 12:00 (UTC)" * 2, {"zone": "UTC"}),
        (
            "dramatis.now",
            "Current time: Saturday, March 7, 2026 at 12:00 (Mars/Base)",
            {"timezone": "Mars/Base"},
        ),
        ("dramatis.now", "Current time: Saturday, March 7, 2026 at 12:00 (UTC)", {"now": "soon"}),
    ],
    ids=["unknown slot", "other form", "twice", "unknown zone", "no time"],
)
def test_an_unexpected_text_is_not_filled(slot, shown, slots):
    with pytest.raises(NotFillable):
        build_clock_prompt(slot, shown, **slots).fill(now=NOON + timedelta(hours=1))


def test_a_time_without_zone_is_rejected(prompt):
    with pytest.raises(ValueError, match="time zone"):
        prompt.fill(now=datetime(2026, 3, 7))  # noqa: DTZ001  # the case


def test_every_slot_of_the_server_is_known_to_the_client():
    assert LAYOUTS
    assert TIMELESS_SLOTS | set(TIME_FORMATS) == set(SLOT_RENDERERS)
    with_time = {name for name, render in SLOT_RENDERERS.items() if "now" in render.__code__.co_names}
    assert with_time == set(TIME_FORMATS)
    assert not TIMELESS_SLOTS & set(TIME_FORMATS)
