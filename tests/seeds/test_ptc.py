"""The ptc layout against seed 004, for agents that write PTC-Lisp: every rule and literal.

Tests with `render` run twice, with the library and by REST; the others show what only one of them has.
"""

import json
import re
from typing import Any

import pytest

from tests.seeds.planted_faults import drop_first_part
from tests.seeds.product import CHANNEL, Product
from tests.seeds.seed import Prompt, Renderer, Seed

HEADINGS = [
    "# Role",
    "# Rules",
    "# Data Inventory",
    "# Available Tools",
    "# PTC-Lisp Quick Reference",
    "# Output Format",
    "# Mission",
]
AGENT_ROLE = """\
# Role

You are a PTC-Lisp program generator. Your task is to write programs that accomplish
the user's mission by calling tools and processing data.

You MUST respond with a single PTC-Lisp program in a ```clojure code block.
The program will be executed, and you may see results in subsequent turns.

Your mission ends ONLY when you call the `return` or `fail` tool."""
SINGLE_TURN_ROLE = """\
# Role

You are a PTC-Lisp expression evaluator. Evaluate the given expression and return
the result directly. No `return` call is needed - your expression result is the answer."""
RULES = [
    "1. Respond with EXACTLY ONE ```clojure code block",
    "2. Do not include explanatory text outside the code block",
    '3. Use `(call "tool-name" args)` to invoke tools',
    "4. Use `ctx/key` to access context data",
    "5. Use `memory/key` or `(memory/get :key)` for persistent state",
    "6. Call `(return result)` when the mission is complete",
    '7. Call `(fail {:reason :keyword :message "..."})` on unrecoverable errors',
]
NOTE = """\
Note: Firewalled fields (prefixed with `_`) show `[Hidden]` in the Sample column
but are available in your program at runtime."""
INVENTORY = f"""\
# Data Inventory

Available in `ctx/`:

| Key | Type | Sample |
|-----|------|--------|
| `ctx/user_id` | `:int` | `123` |
| `ctx/emails` | `[{{id :int, subject :string}}]` | `[{{id: 1, subject: "Hello"}}, ...]` (5 items) |
| `ctx/_token` | `:string` | [Hidden] |

{NOTE}"""
SEARCH_BLOCK = """\
### search
```
search(query :string, limit :int?) -> [{id :int, title :string}]
```
Search for items matching query. Limit defaults to 10."""
GET_USER_BLOCK = """\
### get_user
```
get_user(id :int) -> {name :string, email :string?}
```
Fetch user by ID. Returns user object or nil if not found."""
RETURN_BLOCK = """\
### return
```
return(data :any) -> :exit-success
```
Complete the mission successfully. Data must match your mission's signature."""
FAIL_BLOCK = """\
### fail
```
fail(error {:reason :keyword, :message :string, :op :string?, :details :map?}) -> :exit-error
```
Terminate with an error. Use when the mission cannot be completed."""
EMAIL_AGENT_BLOCK = """\
### email_agent
```
email_agent(prompt :string) -> {summary :string, _ids [:int]}
```
Specialized agent for email processing."""
ENDING_TOOLS = f"{RETURN_BLOCK}\n\n{FAIL_BLOCK}"
CALLABLE_TOOLS = f"## Tools you can call\n\n{SEARCH_BLOCK}\n\n{GET_USER_BLOCK}\n\n{ENDING_TOOLS}"
PLANNING_TOOLS = f"""\
## Tools for planning (do not call)

These tools are shown for context but cannot be called directly:

{EMAIL_AGENT_BLOCK}"""
OUTPUT_FORMAT = """\
# Output Format

Respond with a single ```clojure code block containing your program:

```clojure
(let [data (call "fetch" {:id ctx/user_id})]
  (return {:result data}))
```

Do NOT include:
- Explanatory text before or after the code
- Multiple code blocks
- Code outside of the ```clojure block"""
TEMPLATE = "Find all urgent emails for {{user.name}} and draft acknowledgment replies."
RETURN_FORMAT = "Return format: {count :int, draft_ids [:int]}"
MISSION = f"""\
# Mission

Find all urgent emails for Alice and draft acknowledgment replies.

{RETURN_FORMAT}"""
EMAILS = [{"id": 1, "subject": "Hello"}, *({"id": number, "subject": "More"} for number in (2, 3, 4, 5))]
CONTEXT = {"user_id": 123, "emails": EMAILS, "_token": "s3cret"}
SIGNATURE = "(user_id :int, emails [{id :int, subject :string}], _token :string)"
USER = {"user": {"name": "Alice"}}

RESULT = "(user {name :string}) -> {count :int, draft_ids [:int]}"
TOOLS = {
    "search": {
        "description": "Search for items matching query. Limit defaults to 10.",
        "signature": "search(query :string, limit :int?) -> [{id :int, title :string}]",
    },
    "get_user": {
        "description": "Fetch user by ID. Returns user object or nil if not found.",
        "signature": "get_user(id :int) -> {name :string, email :string?}",
    },
    "email_agent": {
        "description": "Specialized agent for email processing.",
        "signature": "email_agent(prompt :string) -> {summary :string, _ids [:int]}",
    },
}
SEED = Seed(
    layout="ptc",
    tools=TOOLS,
    agents={
        "bare": {},
        "evaluator": {"mode": "single_turn"},
        # The example of the seed.
        "planner": {
            "tools": ["search", "get_user"],
            "planning_tools": ["email_agent"],
            "mission": TEMPLATE,
            "data": {"values": USER, "signature": RESULT},
        },
    },
)
# An agent that other agents can call as a tool.
MAIL_AGENT = "mail-agent"
MAIL_AGENT_BLOCK = EMAIL_AGENT_BLOCK.replace("email_agent", "mail_agent")
MAIL_AGENT_RESULT = "-> {summary :string, _ids [:int]}\n```\n"


def settings_path(agent: str) -> str:
    return f"prompt-settings/agents/{agent}/channels/{CHANNEL}"


def create_records(product: Product) -> None:
    """An agent that is a tool of another agent."""
    product.create_agent(MAIL_AGENT, "ptc")
    product.put(
        f"prompt-settings/agents/{MAIL_AGENT}",
        mission="Specialized agent for email processing. Sort the mail first.",
        signature="(box :string) -> {summary :string, _ids [:int]}",
    )
    product.create("tools", agent=MAIL_AGENT)
    product.create_agent("caller", "ptc", planning_tools=["mail_agent"])


def find_headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("# ")]


def get_section(prompt: Prompt | str, heading: str) -> str:
    """Return the section with this heading, up to the next heading of the first level."""
    text = prompt if isinstance(prompt, str) else prompt.text
    rest = f"\n\n{text}".split(f"\n\n{heading}", 1)[1]
    return heading + rest.partition("\n\n# ")[0]


def list_samples(prompt: Prompt) -> list[str]:
    """Return the sample column of the data inventory, for data without a signature."""
    rows = [line for line in prompt.text.splitlines() if line.startswith("| `ctx/")]
    return [row.removesuffix(" |").split(" | `:any` | ")[1] for row in rows]


def render_mission(render: Renderer, **call: Any) -> str:
    """Return the mission of a call, without its heading."""
    return get_section(render(**call), "# Mission").removeprefix("# Mission\n\n")


def get_tokens(product: Product, agent: str) -> dict[str, int]:
    """Return the tokens of each section, as the API counts them."""
    tokens: dict[str, int] = product.bot.get(f"agents/{agent}/channels/{CHANNEL}/prompt").json()["tokens"][
        "sections"
    ]
    return tokens


def is_near(tokens: float, figure: int) -> bool:
    """The seed's figures are approximate: accept half of a figure up to twice the figure."""
    return figure / 2 <= tokens <= figure * 2


# Overview and Prompt Structure


@pytest.mark.parametrize("agent", SEED.agents)
def test_the_seven_sections_are_in_order_for_every_agent(render, agent):
    assert find_headings(render(agent).text) == HEADINGS


def test_the_prompt_refers_to_no_document_outside_of_it(render):
    text = render("planner").text
    assert "http" not in text
    assert ".md" not in text


def test_what_the_layout_has_no_place_for_is_in_the_warnings(render):
    prompt = render("planner", {"soul": "Be kind."}, is_background=True, append="More.")
    assert prompt.warnings == [
        f"The layout does not use {name}." for name in ("soul", "slots.is_background", "slots.append")
    ]


# Section 3: Data Inventory


def test_inventory_of_the_data_of_a_call(render):
    prompt = render(data=CONTEXT, signature=SIGNATURE, limits={"list_sample": 1})
    assert get_section(prompt, "# Data Inventory") == INVENTORY


def test_inventory_of_stored_sample_data(render):
    data = {"values": CONTEXT, "signature": SIGNATURE}
    prompt = render(given={"data": data, "limits": {"list_sample": 1}})
    assert get_section(prompt, "# Data Inventory") == INVENTORY


def test_data_of_a_call_replaces_the_sample_data(render):
    section = get_section(render("planner", data={"other": 7}), "# Data Inventory")
    assert [line for line in section.splitlines() if "`ctx/" in line][1:] == [
        "| `ctx/other` | `:any` | `7` |"
    ]


def test_keys_come_from_the_context_in_its_order(render):
    text = render(data={"b": 1, "a": 2}, signature="(a :int, b :int)").text
    assert text.index("`ctx/b`") < text.index("`ctx/a`")


@pytest.mark.parametrize(
    "signature", ["(n [:int]?)", "{n [:int]?}", "{:n [:int]?}", "(n [:int]?) -> {count :int}"]
)
def test_types_come_from_the_signature(render, signature):
    prompt = render(data={"n": [1]}, signature=signature)
    assert "| `ctx/n` | `[:int]?` | `[1]` |" in prompt.text
    assert list(prompt.warnings) == []


def test_a_key_without_a_type_is_any_and_a_type_without_a_key_is_no_row(render):
    prompt = render(data={"a": 1}, signature="(b :int, c :int?, d [:int]?)")
    assert "| `ctx/a` | `:any` | `1` |" in prompt.text
    assert "`ctx/b`" not in prompt.text
    assert prompt.warnings == [
        "data.signature: has no type for a",
        "data.signature: promises values that are not there: b",
    ]


def test_the_signature_of_a_call_replaces_the_stored_signature(render):
    text = render("planner", signature="(user :map)").text
    assert '| `ctx/user` | `:map` | `{name: "Alice"}` |' in text
    assert "Return format:" not in text


def test_a_signature_that_does_not_parse_is_refused_with_its_position(product):
    body = {"data": {"a": 1}, "signature": "(a :int"}
    answer = product.bot.post(f"agents/bare/channels/{CHANNEL}/prompt:render", body)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["pointer"], "at character 8" in error["detail"]) == ("/signature", True)


SAMPLES: list[tuple[Any, str]] = [
    (123, "`123`"),
    (-1.5, "`-1.5`"),
    ("Hello", '`"Hello"`'),
    (True, "`true`"),
    (False, "`false`"),
    (None, "`nil`"),
    ({"id": 1, "subject": "Hello"}, '`{id: 1, subject: "Hello"}`'),
    ({}, "`{}`"),
    ([], "`[]`"),
    ([1, 2, 3], "`[1, 2, 3]`"),
    ([1, 2, 3, 4], "`[1, 2, 3, ...]` (4 items)"),
    ({"ids": [1, 2, 3, 4]}, "`{ids: [1, 2, 3, ...] (4 items)}`"),
    ({"two words": 1}, '`{"two words": 1}`'),
    ("a\nb\tc", '`"a\\nb\\tc"`'),
    ("a\r\nb", '`"a\\nb"`'),
    ("a\u2028b", '`"a\\u2028b"`'),
    ('say "hi" \\ bye', '`"say \\"hi\\" \\\\ bye"`'),
    ("two  spaces", '`"two  spaces"`'),
    ("a | b", '`"a \\| b"`'),
    ("a ` b", '``"a ` b"``'),
    ("a `` b", '```"a `` b"```'),
    ("Grüße 👋", '`"Grüße 👋"`'),
]


def test_how_samples_are_written(render):
    data = {f"key_{number}": value for number, (value, _) in enumerate(SAMPLES)}
    assert list_samples(render(data=data)) == [sample for _, sample in SAMPLES]


def test_fields_with_an_underscore_are_hidden_at_any_depth(render):
    data = {"_key": "s3cret", "user": {"_pin": "s3cret", "cards": [{"_cvc": "s3cret", "ok": True}]}}
    samples = list_samples(render(data=data))
    assert samples == ["[Hidden]", "`{_pin: [Hidden], cards: [{_cvc: [Hidden], ok: true}]}`"]


def test_fields_are_hidden_by_name_in_a_call_and_in_settings(render):
    data = {"email": "s3cret", "user": {"email": "s3cret", "cards": [{"cvc": "s3cret", "ok": True}]}}
    hidden = ["email", "cvc"]
    stored = render(given={"data": {"values": data, "hidden": hidden}})
    for prompt in (stored, render("evaluator", data=data, hidden=hidden)):
        assert list_samples(prompt) == ["[Hidden]", "`{email: [Hidden], cards: [{cvc: [Hidden], ok: true}]}`"]
        assert "(prefixed with `_`, or hidden by name) show `[Hidden]`" in prompt.text
        assert "s3cret" not in prompt.text


def test_hidden_values_of_a_call_are_not_recorded(product):
    body = {"data": CONTEXT | {"pin": "s3cret"}, "hidden": ["pin"]}
    answer = product.bot.post(f"agents/bare/channels/{CHANNEL}/prompt:render", body)
    recorded = product.call("GET", f"ledger/{answer.json()['ledger_id']}")
    assert "Hello" in recorded["slots"]["data"]
    assert "s3cret" not in json.dumps([answer.json(), recorded])


def test_the_note_is_below_every_table(render):
    assert get_section(render(data={"a": 1}), "# Data Inventory").endswith(f" |\n\n{NOTE}")


# Section 4: Tool Schemas


def get_tools(prompt: Prompt | str) -> str:
    return get_section(prompt, "# Available Tools")


def test_without_planning_tools_their_heading_is_left_out(render):
    assert "planning" not in render(given={"tools": ["search"]}).text


def test_return_and_fail_follow_the_tools_and_are_there_without_any(render):
    assert get_tools(render()) == f"# Available Tools\n\n## Tools you can call\n\n{ENDING_TOOLS}"


def test_a_single_turn_has_no_return_and_fail(render):
    assert get_tools(render("evaluator")) == "# Available Tools"
    tools = get_tools(render("evaluator", {"tools": ["search"]}))
    assert tools == f"# Available Tools\n\n## Tools you can call\n\n{SEARCH_BLOCK}"
    assert get_tools(render("evaluator", tools=[])) == "# Available Tools"


@pytest.mark.parametrize("name", ["return", "fail"])
def test_a_tool_named_return_is_reported(render, name):
    prompt = render(given={"tools": [{"name": name, "description": "Give back."}]})
    assert prompt.warnings == [f"tools[0].name: {name} is the name of a tool that every agent has"]


def test_a_signature_without_a_name_gets_the_name_of_the_tool(render):
    text = render(tools=[{"name": "add", "signature": "(a :int,b :int?)->:int"}]).text
    assert "### add\n```\nadd(a :int, b :int?) -> :int\n```\n" in text


def test_without_a_signature_it_is_derived_from_the_parameters(render):
    properties = {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "user": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    }
    parameters = {"type": "object", "properties": properties, "required": ["query", "tags"]}
    text = render(tools=[{"name": "find", "parameters": parameters}]).text
    assert "find(query :string, limit :int?, tags [:string], user {id :int}?) -> :any" in text


@pytest.mark.parametrize(
    ("texts", "description"),
    [
        ({"description": "Explicit.", "snippet": "Short."}, "\nExplicit."),
        ({"description": "", "snippet": "Short."}, "\nShort."),
        ({"description": " \n", "snippet": " ", "signature": " "}, ""),
    ],
    ids=["the description first", "else the short text", "else nothing"],
)
def test_the_description_of_a_tool_is_the_explicit_one_or_its_short_text(render, texts, description):
    text = render(tools=[{"name": "t", **texts}]).text
    assert f"### t\n```\nt() -> :any\n```{description}\n\n### return" in text


@pytest.mark.parametrize(
    ("texts", "description"),
    [({"description": "Explicit.", "snippet": "Short."}, "Explicit."), ({"snippet": "Short."}, "Short.")],
    ids=["explicit", "short text"],
)
def test_texts_of_a_tool_precede_those_of_the_agent_that_it_calls(product, texts, description):
    product.create("tools", name="mail", agent=MAIL_AGENT, **texts)
    product.edit("agents/bare", tools=["mail"])
    text = product.fetch("bare")
    assert f"{MAIL_AGENT_RESULT}{description}\n\n" in text
    assert "Specialized" not in text


def test_description_source_4_is_derived_from_the_prompt_of_the_agent(product):
    assert MAIL_AGENT_BLOCK in product.fetch("caller")
    settings = f"prompt-settings/agents/{MAIL_AGENT}"
    product.put(settings, mission=f"# Mail\n\nSort mail. Stop.\n\n{RETURN_FORMAT}")
    block = "mail_agent(prompt :string) -> {count :int, draft_ids [:int]}\n```\nSort mail."
    assert block in product.fetch("caller")


def test_a_description_of_the_agent_precedes_its_prompt(product):
    product.edit(f"agents/{MAIL_AGENT}", description="Handles mail.")
    text = product.fetch("caller")
    assert f"{MAIL_AGENT_RESULT}Handles mail.\n\n" in text
    assert "Specialized" not in text


def test_an_agent_as_an_active_tool_can_be_called(product):
    product.edit("agents/caller", tools=["mail_agent"], planning_tools=[])
    tools = get_tools(product.fetch("caller"))
    assert tools.startswith(f"# Available Tools\n\n## Tools you can call\n\n{MAIL_AGENT_BLOCK}\n\n### return")


def test_a_call_cannot_make_a_planning_tool_callable(render):
    prompt = render("planner", tools=["email_agent"])
    assert prompt.text.count(EMAIL_AGENT_BLOCK) == 1
    assert PLANNING_TOOLS in prompt.text
    assert prompt.warnings == ["The tool email_agent of the call has no definition."]


# Section 5: PTC-Lisp Reference


def get_topic(render: Renderer, heading: str) -> str:
    """Return one topic of the language reference."""
    reference = get_section(render(), "# PTC-Lisp Quick Reference")
    return reference.split(f"{heading}\n")[1].partition("\n\n## ")[0]


def test_the_reference_has_five_topics_in_order(render):
    reference = get_section(render(), "# PTC-Lisp Quick Reference")
    assert [line for line in reference.splitlines() if line.startswith("#")] == [
        "# PTC-Lisp Quick Reference",
        "## Syntax",
        "## Core Functions",
        "## Context Access",
        "## Collections",
        "## Common Patterns",
    ]


@pytest.mark.parametrize(
    ("heading", "subjects"),
    [
        ("## Syntax", ["Clojure", "Keywords", "Maps", "Vectors", "call a function"]),
        ("## Core Functions", ["`call`", "`let`", "`if`", "`do`", "`fn`"]),
        ("## Context Access", ["`ctx/key`", "`memory/key`", "`(memory/put :key value)`"]),
        (
            "## Collections",
            ["`map`, `mapv`", "`filter`", "`reduce`", "`first`, `last`, `nth`", "`count`, `empty?`"],
        ),
    ],
)
def test_a_topic_has_one_entry_for_each_subject(render, heading, subjects):
    entries = get_topic(render, heading).splitlines()
    assert len(entries) == len(subjects)
    for entry, subject in zip(entries, subjects, strict=True):
        assert entry.startswith("- ")
        assert subject in entry


def test_an_entry_has_an_example_where_the_seed_has_one(render):
    """The prose is the product's own, so the examples are other values of the same forms."""
    forms = {
        "## Syntax": [r"`:\w+`", r"`\{:\w+ \w+ :\w+ :?\w+\}`", r"`\[\S+ \S+ \S+\]`", r"`\(\S+ \w+ \w+\)`"],
        "## Core Functions": [
            r'`\(call "tool-name" \{:\w+ \w+\}\)`',
            r"`\(let \[\w+ \w+ \w+ \w+\] \(.+\)\)`",
            r"`\(if \S+ \S+ \S+\)`",
            r"`\(do \S+ \S+\)`",
            r"`\(fn \[\w\] \(.+\)\)`",
        ],
        "## Collections": [
            r"`\(mapv :\w+ \w+\)`",
            r"`\(filter #\(> \(:\w+ %\) \S+\) \w+\)`",
            r"`\(reduce \+ 0 \w+\)`",
        ],
    }
    missing = [
        form
        for heading in forms
        for form in forms[heading]
        if not re.search(form, get_topic(render, heading))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("index", "functions"),
    [
        (0, ["(let [", '(call "', "(mapv :"]),
        (1, ["(if (empty? ", "(fail {:reason :", ":message ", "(return {:", "(count "]),
        (2, ["(do\n", "(memory/put :", '(call "', "memory/"]),
    ],
    ids=["fetch and process", "conditional logic", "several steps with memory"],
)
def test_three_patterns_are_in_one_code_block(render, index, functions):
    topic = get_topic(render, "## Common Patterns")
    assert topic.startswith("```clojure\n;; ")
    assert topic.endswith("\n```")
    patterns = topic.removeprefix("```clojure\n").removesuffix("\n```").split("\n\n")
    assert len(patterns) == 3
    assert patterns[index].startswith(";; ")
    assert patterns[index].count("(") == patterns[index].count(")")
    assert [function for function in functions if function not in patterns[index]] == []


# Section 7: Mission Prompt


def test_mission_of_settings_with_its_placeholder_expanded(render):
    prompt = render(given={"mission": f"{TEMPLATE}\n\n{RETURN_FORMAT}", "data": {"values": USER}})
    assert get_section(prompt, "# Mission") == MISSION


def test_mission_of_a_call_with_its_placeholder_expanded(render):
    prompt = render(mission=f"{TEMPLATE}\n\n{RETURN_FORMAT}", data=USER)
    assert get_section(prompt, "# Mission") == MISSION


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_the_result_type_of_the_signature_ends_the_mission(render, ending):
    assert get_section(render("planner"), "# Mission") == MISSION
    prompt = render(mission=f"{TEMPLATE}{ending}", data=USER, signature=RESULT)
    assert get_section(prompt, "# Mission") == MISSION


@pytest.mark.parametrize(
    "mission", ["Go.\n\nReturn format: :int", "Go.\n\n  Return format: a poem\nThen stop."]
)
def test_a_return_format_of_the_mission_is_not_repeated(render, mission):
    assert get_section(render("planner", mission=mission), "# Mission") == f"# Mission\n\n{mission}"


def test_words_about_a_return_format_inside_a_line_do_not_count_as_one(render):
    text = render_mission(render, mission="Mind the Return format: it matters.", data=USER, signature=RESULT)
    assert text == f"Mind the Return format: it matters.\n\n{RETURN_FORMAT}"


def test_without_a_text_the_mission_is_the_return_format(render):
    assert render_mission(render, data=USER, signature=RESULT) == RETURN_FORMAT


def test_the_return_format_is_outside_of_a_code_block_that_is_left_open(render):
    text = render_mission(render, mission="Run\n```clojure\n(+ 1 2)", data=USER, signature=RESULT)
    assert text.endswith(f"(+ 1 2)\n```\n\n{RETURN_FORMAT}")


def test_placeholders_get_the_data_of_the_call(render):
    prompt = render("planner", data={"user": {"name": "Bob"}})
    assert get_section(prompt, "# Mission") == MISSION.replace("Alice", "Bob")


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        ('as "is"\n| it', 'as "is"\n| it'),
        ("", ""),
        (7, "7"),
        (True, "true"),
        (["a", 2, 3, 4], '["a", 2, 3, 4]'),
        ({"id": 1, "_pin": 2}, "{id: 1, _pin: [Hidden]}"),
        ("{{other}}", "{{other}}"),
    ],
    ids=["text", "empty text", "number", "flag", "whole list", "hidden field", "never expanded again"],
)
def test_how_a_placeholder_is_expanded(render, value, expanded):
    data = {"a": {"value": value}, "other": "no"}
    assert render_mission(render, mission="{{a.value}} for {{ a . value }}!", data=data) == (
        f"{expanded} for {expanded}!"
    )


@pytest.mark.parametrize("name", ["{{nobody}}", "{{user.age}}", "{{user.name.first}}", "{{}}", "{{nil}}"])
def test_a_placeholder_without_a_value_stays_and_is_reported(render, name):
    prompt = render(mission=f"For {name}!", data={"user": {"name": "A"}, "nil": None})
    assert prompt.text.endswith(f"# Mission\n\nFor {name}!")
    assert f"mission: there is no value for {name}" in prompt.warnings


def test_a_placeholder_of_a_hidden_field_is_refused(product):
    body = {"mission": "Print {{_token}}.", "data": CONTEXT}
    answer = product.bot.post(f"agents/bare/channels/{CHANNEL}/prompt:render", body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/mission")
    assert answer.json()["detail"] == "mission: the placeholder {{_token}} names a hidden field"


def test_a_placeholder_shows_an_object_without_its_hidden_fields(render):
    data = {"user": {"email": "s3cret"}}
    assert render_mission(render, mission="{{user}}", data=data, hidden=["email"]) == "{email: [Hidden]}"


def test_a_stored_mission_with_such_a_placeholder_is_reported_and_not_served(product):
    before = product.fetch("bare")
    product.put(settings_path("bare"), mission="Print {{_token}}.", sample_data=CONTEXT)
    assert product.fetch("bare") == before
    [prompt] = product.call("GET", "prompts?agent=bare")["items"]
    assert prompt["problem"] == "Not built: mission: the placeholder {{_token}} names a hidden field"


def test_without_a_mission_the_instructions_are_the_mission(render):
    prompt = render(given={"instructions": "Tidy up for {{user.name}}."}, data=USER)
    assert get_section(prompt, "# Mission") == "# Mission\n\nTidy up for Alice."
    prompt = render(mission="Go.")
    assert get_section(prompt, "# Mission") == "# Mission\n\nGo."
    assert "The layout does not use instructions." in prompt.warnings


def test_a_blank_mission_is_none(library):
    assert library(given={"instructions": "Tidy up.", "mission": " "}).text.endswith("# Mission\n\nTidy up.")


# Complete Template


def test_the_complete_prompt_of_an_agent(render):
    values = {"user_id": 123, "emails": EMAILS, "user_name": "Alice", "_token": "s3cret"}
    signature = (
        "(user_id :int, emails [{id :int, subject :string}], user_name :string, _token :string)"
        " -> {count :int, draft_ids [:int]}"
    )
    given = {
        "mission": TEMPLATE.replace("user.name", "user_name"),
        "data": {"values": values, "signature": signature},
        "limits": {"list_sample": 1},
    }
    prompt = render("planner", given)
    inventory = INVENTORY.replace(
        "| `ctx/_token`", '| `ctx/user_name` | `:string` | `"Alice"` |\n| `ctx/_token`'
    )
    assert prompt.text == "\n\n".join(
        [
            AGENT_ROLE,
            "\n".join(["# Rules", "", *RULES]),
            inventory,
            "# Available Tools",
            CALLABLE_TOOLS,
            PLANNING_TOOLS,
            get_section(prompt, "# PTC-Lisp Quick Reference"),
            OUTPUT_FORMAT,
            MISSION,
        ]
    )
    assert list(prompt.warnings) == []


def test_the_complete_prompt_of_a_single_turn_without_context_tools_and_mission(render):
    prompt = render("evaluator")
    assert prompt.text == "\n\n".join(
        [
            SINGLE_TURN_ROLE,
            "\n".join(["# Rules", "", *RULES[:5]]),
            "# Data Inventory",
            "# Available Tools",
            get_section(prompt, "# PTC-Lisp Quick Reference"),
            OUTPUT_FORMAT,
            "# Mission",
        ]
    )


def test_a_single_turn_with_tools_and_a_mission_has_the_same_role(render):
    text = render("evaluator", {"tools": ["search"], "instructions": "Go."}).text
    assert text.startswith(f"{SINGLE_TURN_ROLE}\n\n# Rules")
    assert text.endswith("\n\n# Mission\n\nGo.")


def test_the_mode_is_agent_unless_a_setting_says_single_turn(product):
    assert AGENT_ROLE in product.fetch("bare")
    product.put("prompt-settings/workspace", mode="single_turn")
    assert SINGLE_TURN_ROLE in product.fetch("bare")
    product.put(settings_path("bare"), mode="agent")
    assert AGENT_ROLE in product.fetch("bare")


def test_the_mode_of_a_call_precedes_the_setting(render):
    assert SINGLE_TURN_ROLE in render(mode="single_turn").text
    assert AGENT_ROLE in render("evaluator", mode="agent").text
    assert SINGLE_TURN_ROLE in render("evaluator").text


# Token Budget Considerations


@pytest.mark.parametrize(
    ("name", "figure"), [("role", 50), ("rules", 80), ("reference", 400), ("output_format", 50)]
)
def test_tokens_of_fixed_sections_are_near_the_table(product, name, figure):
    bare, planner = get_tokens(product, "bare"), get_tokens(product, "planner")
    assert bare[name] == planner[name]
    assert is_near(bare[name], figure)


def test_tokens_of_the_inventory_are_near_10_per_field(product):
    values = {f"field_{number}": number for number in range(50)}
    types = ", ".join(f"{name} :int" for name in values)
    product.put(settings_path("bare"), sample_data={"field_0": 0}, signature="(field_0 :int)")
    one = get_tokens(product, "bare")["data"]
    product.put(settings_path("bare"), sample_data=values, signature=f"({types})")
    assert is_near((get_tokens(product, "bare")["data"] - one) / 49, 10)


def test_tokens_of_the_tools_are_near_30_per_tool(product):
    tools = get_tokens(product, "planner")["tools"] - get_tokens(product, "bare")["tools"]
    assert is_near(tools / 2, 30)


def test_tokens_of_the_mission_are_those_of_the_users_text(product):
    product.put(settings_path("bare"), mission="word " * 100)
    assert 100 <= get_tokens(product, "bare")["mission"] <= 110


@pytest.mark.parametrize("heading", ["# Role", "# Rules", "# PTC-Lisp Quick Reference", "# Output Format"])
def test_fixed_sections_are_the_same_whatever_the_inputs(render, heading):
    assert get_section(render(), heading) == get_section(render("planner"), heading)


def test_the_reference_can_be_trimmed_and_keeps_complete_topics(render):
    stored = render(given={"limits": {"parts": {"reference": 800}}})
    for prompt in (stored, render("evaluator", limits={"sections": {"reference": 800}})):
        reference = get_section(prompt, "# PTC-Lisp Quick Reference")
        assert "- `fn` makes a function" in reference
        assert "## Common Patterns" not in reference
        assert "characters left out]" in reference
        assert any("characters of reference were cut" in warning for warning in prompt.warnings)


def test_a_total_limit_cuts_rows_and_topics_and_never_a_table_or_a_fence(render):
    data = {"values": {f"field_{number}": "word " * 20 for number in range(50)}}
    text = render(given={"data": data, "mission": "Go.", "limits": {"total": 4_000}}).text
    assert len(text) <= 4_000
    assert all(line.endswith(" |") for line in text.splitlines() if line.startswith("| "))
    assert text.count("\n```") % 2 == 0
    assert "# Mission\n\nGo." in text


# Optimization Options


def test_minimal_mode_skips_the_reference_by_setting_and_by_request(render):
    without_reference = [name for name in HEADINGS if "Reference" not in name]
    assert find_headings(render(limits={"omit_reference": True}).text) == without_reference
    assert find_headings(render(given={"limits": {"omit_reference": True}}).text) == without_reference
    assert find_headings(render(limits={"omit_reference": False}).text) == HEADINGS


def test_tool_trimming_shows_only_the_tools_that_the_call_names_in_its_order(render):
    text = render("planner", tools=["get_user"]).text
    assert f"## Tools you can call\n\n{GET_USER_BLOCK}\n\n{ENDING_TOOLS}\n\n{PLANNING_TOOLS}" in text
    assert "### search" not in text
    text = render("planner", tools=["get_user", "search", "get_user"]).text
    assert f"## Tools you can call\n\n{GET_USER_BLOCK}\n\n{SEARCH_BLOCK}\n\n{RETURN_BLOCK}" in text
    assert f"## Tools you can call\n\n{ENDING_TOOLS}" in render("planner", tools=[]).text


def test_data_sampling_shows_the_first_3_items_and_the_count(render):
    assert list_samples(render(data={"list": [1, 2, 3, 4, 5]})) == ["`[1, 2, 3, ...]` (5 items)"]
    prompt = render(data={"list": [1, 2, 3]})
    assert list_samples(prompt) == ["`[1, 2, 3]`"]
    assert prompt.warnings == ["data.signature: has no type for list"]


def test_list_sample_is_a_setting_and_a_limit_of_the_request(render):
    given = {"data": {"values": {"list": [1, 2, 3, 4, 5]}}, "limits": {"list_sample": 2}}
    assert list_samples(render(given=given)) == ["`[1, 2, ...]` (5 items)"]
    assert list_samples(render(limits={"list_sample": 4})) == ["`[1, 2, 3, 4, ...]` (5 items)"]
    assert list_samples(render(limits={"list_sample": 5})) == ["`[1, 2, 3, 4, 5]`"]


def test_strings_are_cut_after_500_characters(render):
    assert list_samples(render(data={"text": "a" * 500})) == [f'`"{"a" * 500}"`']
    assert list_samples(render(data={"text": "a" * 501})) == [f'`"{"a" * 500}…"`']


def test_a_warning_names_the_data_of_a_call_whose_samples_are_cut(product):
    product.render("bare", data={"text": "a" * 501})
    assert "The samples of text show only a part of the data." in product.warnings


def test_string_truncate_is_a_setting_and_a_limit_of_the_request(render):
    given = {"data": {"values": {"map": {"text": "abcdef"}}}, "limits": {"string_truncate": 3}}
    assert list_samples(render(given=given)) == ['`{text: "abc…"}`']
    assert list_samples(render(limits={"string_truncate": 5})) == ['`{text: "abcde…"}`']


def test_the_three_limits_of_the_seed_together(render):
    limits = {"list_sample": 3, "string_truncate": 500, "omit_reference": True}
    data = {"list": [1, 2, 3, 4], "text": "a" * 501}
    by_request = render(data=data, limits=limits)
    assert render(given={"data": {"values": data}, "limits": limits}).text == by_request.text
    assert list_samples(by_request) == ["`[1, 2, 3, ...]` (4 items)", f'`"{"a" * 500}…"`']
    assert "Quick Reference" not in by_request.text


# Error Recovery Prompts


def test_the_error_of_the_previous_turn_is_appended(render):
    error = {"error": "parse_error", "message": "Unexpected token at position 45"}
    assert render("planner", previous_error=error).text == (
        f"{render('planner').text}\n\n"
        "# Previous Turn Error\n\n"
        "Your previous program failed with:\n"
        "- **Error**: parse_error\n"
        "- **Message**: Unexpected token at position 45\n"
        "- **Context**: `ctx/fail` contains the full error details\n\n"
        "Please fix the issue and try again."
    )


def test_without_an_error_nothing_is_appended(render):
    assert render("planner").text.endswith(f"\n\n{MISSION}")


def test_a_call_can_name_its_own_context_and_leave_out_the_message(render):
    text = render("planner", previous_error={"error": "timeout", "context": "see `ctx/log`"}).text
    assert "failed with:\n- **Error**: timeout\n- **Context**: see `ctx/log`\n\nPlease fix" in text


def test_a_message_of_several_lines_stays_in_its_entry(render):
    text = render(previous_error={"error": "crash", "message": "one\n- **Error**: two\n```"}).text
    assert "- **Error**: crash\n- **Message**: one\n  - **Error**: two\n  ```\n- **Context**" in text


def test_the_name_of_an_error_stays_on_one_line(library):
    assert "- **Error**: bad name\n" in library(previous_error={"error": "bad\nname"}).text


@pytest.mark.planted
def test_a_layout_without_its_first_part_is_detected(render):
    with drop_first_part("ptc"), pytest.raises(AssertionError):
        test_the_complete_prompt_of_an_agent(render)
