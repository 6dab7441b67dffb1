"""Seed 004, the prompt of agents that write PTC-Lisp: every rule and literal, in served prompts."""

import json
import re
from typing import Any

import pytest

from tests.seeds.product import CHANNEL, Product

pytestmark = pytest.mark.django_db

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

# The planner is the seed's example. The bare agent and the evaluator (single turn) have no content.
PLANNER, BARE, EVALUATOR, EMAIL_AGENT = "planner", "bare", "evaluator", "email-agent"


def settings_path(agent: str) -> str:
    return f"prompt-settings/agents/{agent}/channels/{CHANNEL}"


def create_records(product: Product) -> None:
    """The agents and tools of the seed's example."""
    product.create(
        "tools",
        name="search",
        description="Search for items matching query. Limit defaults to 10.",
        signature="search(query :string, limit :int?) -> [{id :int, title :string}]",
    )
    product.create(
        "tools",
        name="get_user",
        description="Fetch user by ID. Returns user object or nil if not found.",
        signature="get_user(id :int) -> {name :string, email :string?}",
    )
    product.create_agent(EMAIL_AGENT, "ptc")
    product.put(
        f"prompt-settings/agents/{EMAIL_AGENT}",
        mission="Specialized agent for email processing. Sort the mail first.",
        signature="(box :string) -> {summary :string, _ids [:int]}",
    )
    product.create("tools", agent=EMAIL_AGENT)
    product.create_agent(PLANNER, "ptc", tools=["search", "get_user"], planning_tools=["email_agent"])
    product.put(
        settings_path(PLANNER),
        mission=TEMPLATE,
        signature="(user {name :string}) -> {count :int, draft_ids [:int]}",
        sample_data=USER,
    )
    product.create_agent(BARE, "ptc")
    product.create_agent(EVALUATOR, "ptc")
    product.put(settings_path(EVALUATOR), mode="single_turn")


def find_headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("# ")]


def get_section(text: str, heading: str) -> str:
    """Return the section with this heading, up to the next heading of the first level."""
    rest = f"\n\n{text}".split(f"\n\n{heading}", 1)[1]
    return heading + rest.partition("\n\n# ")[0]


def list_samples(text: str) -> list[str]:
    """Return the sample column of the data inventory, for data without a signature."""
    rows = [line for line in text.splitlines() if line.startswith("| `ctx/")]
    return [row.removesuffix(" |").split(" | `:any` | ")[1] for row in rows]


def get_tokens(product: Product, agent: str) -> dict[str, int]:
    """Return the tokens of each section, as the API counts them."""
    tokens: dict[str, int] = product.bot.get(f"agents/{agent}/channels/{CHANNEL}/prompt").json()["tokens"][
        "sections"
    ]
    return tokens


def is_near(tokens: float, figure: int) -> bool:
    """The seed's figures are approximate: accept half of a figure up to twice the figure."""
    return figure / 2 <= tokens <= figure * 2


# Overview


def test_every_agent_has_the_same_structure(product: Product) -> None:
    assert [find_headings(product.fetch(agent)) for agent in (BARE, PLANNER, EVALUATOR)] == [HEADINGS] * 3


def test_the_prompt_refers_to_no_document_outside_of_it(product: Product) -> None:
    text = product.fetch(PLANNER)
    assert "http" not in text
    assert ".md" not in text


# Prompt Structure


def test_the_seven_sections_are_in_order(product: Product) -> None:
    assert find_headings(product.fetch(PLANNER)) == HEADINGS


def test_sections_are_one_blank_line_apart(product: Product) -> None:
    text = product.fetch(PLANNER)
    assert "\n\n\n" not in text
    assert all(f"\n\n{heading}\n\n" in f"\n\n{text}" for heading in HEADINGS)


# Section 1: Role & Purpose


def test_role_of_an_agent(product: Product) -> None:
    assert get_section(product.fetch(PLANNER), "# Role") == AGENT_ROLE


def test_role_of_a_single_turn(product: Product) -> None:
    assert get_section(product.fetch(EVALUATOR), "# Role") == SINGLE_TURN_ROLE


# Section 2: Environment Rules


@pytest.mark.parametrize("number", range(1, 8))
def test_rules_of_an_agent(product: Product, number: int) -> None:
    lines = get_section(product.fetch(PLANNER), "# Rules").splitlines()
    assert len(lines) == 2 + len(RULES)
    assert lines[1 + number] == RULES[number - 1]


def test_a_single_turn_has_no_rules_about_return_and_fail(product: Product) -> None:
    assert get_section(product.fetch(EVALUATOR), "# Rules") == "\n".join(["# Rules", "", *RULES[:5]])


# Section 3: Data Inventory


def test_inventory_of_the_data_of_a_call(product: Product) -> None:
    text = product.render(BARE, data=CONTEXT, signature=SIGNATURE, limits={"list_sample": 1})
    assert get_section(text, "# Data Inventory") == INVENTORY


def test_inventory_of_stored_sample_data(product: Product) -> None:
    product.put(settings_path(BARE), sample_data=CONTEXT, signature=SIGNATURE, list_sample=1)
    assert get_section(product.fetch(BARE), "# Data Inventory") == INVENTORY


def test_data_of_a_call_replaces_the_sample_data(product: Product) -> None:
    section = get_section(product.render(PLANNER, data={"other": 7}), "# Data Inventory")
    assert [line for line in section.splitlines() if "`ctx/" in line][1:] == [
        "| `ctx/other` | `:any` | `7` |"
    ]


def test_keys_come_from_the_context_in_its_order(product: Product) -> None:
    text = product.render(BARE, data={"b": 1, "a": 2}, signature="(a :int, b :int)")
    assert text.index("`ctx/b`") < text.index("`ctx/a`")


@pytest.mark.parametrize(
    "signature", ["(n [:int]?)", "{n [:int]?}", "{:n [:int]?}", "(n [:int]?) -> {count :int}"]
)
def test_types_come_from_the_signature(product: Product, signature: str) -> None:
    text = product.render(BARE, data={"n": [1]}, signature=signature)
    assert "| `ctx/n` | `[:int]?` | `[1]` |" in text
    assert not product.warnings


def test_a_key_without_a_type_is_any_and_a_type_without_a_key_is_no_row(product: Product) -> None:
    text = product.render(BARE, data={"a": 1}, signature="(b :int, c :int?)")
    assert "| `ctx/a` | `:any` | `1` |" in text
    assert "`ctx/b`" not in text
    assert product.warnings == [
        "data.signature: has no type for a",
        "data.signature: promises values that are not there: b",
    ]


def test_the_signature_of_a_call_replaces_the_stored_signature(product: Product) -> None:
    text = product.render(PLANNER, signature="(user :map)")
    assert '| `ctx/user` | `:map` | `{name: "Alice"}` |' in text
    assert "Return format:" not in text


def test_a_signature_that_does_not_parse_is_refused_with_its_position(product: Product) -> None:
    body = {"data": {"a": 1}, "signature": "(a :int"}
    answer = product.bot.post(f"agents/{BARE}/channels/{CHANNEL}/prompt:render", body)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["pointer"], "at character 8" in error["detail"]) == ("/signature", True)


def test_how_samples_are_written(product: Product) -> None:
    samples: dict[str, Any] = {
        "`123`": 123,
        '`"Hello"`': "Hello",
        "`true`": True,
        "`nil`": None,
        '`{id: 1, subject: "Hello"}`': {"id": 1, "subject": "Hello"},
        "`[1, 2, 3]`": [1, 2, 3],
        "`{ids: [1, 2, 3, ...] (4 items)}`": {"ids": [1, 2, 3, 4]},
        '`"a \\| b\\nc"`': "a | b\nc",
        '``"a ` b"``': "a ` b",
    }
    data = {f"key_{number}": value for number, value in enumerate(samples.values())}
    assert list_samples(product.render(BARE, data=data)) == list(samples)


def test_fields_with_an_underscore_are_hidden_at_any_depth(product: Product) -> None:
    data = {"_key": "s3cret", "user": {"_pin": "s3cret", "cards": [{"_cvc": "s3cret", "ok": True}]}}
    samples = list_samples(product.render(BARE, data=data))
    assert samples == ["[Hidden]", "`{_pin: [Hidden], cards: [{_cvc: [Hidden], ok: true}]}`"]


def test_fields_are_hidden_by_name_in_a_call_and_in_settings(product: Product) -> None:
    data = {"email": "s3cret", "user": {"email": "s3cret"}}
    product.put(settings_path(BARE), sample_data=data, hidden=["email"])
    for text in (product.fetch(BARE), product.render(EVALUATOR, data=data, hidden=["email"])):
        assert list_samples(text) == ["[Hidden]", "`{email: [Hidden]}`"]
        assert "(prefixed with `_`, or hidden by name) show `[Hidden]`" in text


def test_hidden_values_of_a_call_are_not_recorded(product: Product) -> None:
    body = {"data": CONTEXT | {"pin": "s3cret"}, "hidden": ["pin"]}
    answer = product.bot.post(f"agents/{BARE}/channels/{CHANNEL}/prompt:render", body)
    recorded = product.call("GET", f"ledger/{answer.json()['ledger_id']}")
    assert "Hello" in recorded["slots"]["data"]
    assert "s3cret" not in json.dumps([answer.json(), recorded])


def test_the_note_is_below_every_table(product: Product) -> None:
    assert get_section(product.render(BARE, data={"a": 1}), "# Data Inventory").endswith(f" |\n\n{NOTE}")


# Section 4: Tool Schemas


def test_tools_that_can_be_called(product: Product) -> None:
    section = get_section(product.fetch(PLANNER), "# Available Tools")
    assert section.startswith(f"# Available Tools\n\n{CALLABLE_TOOLS}")


def test_tools_for_planning(product: Product) -> None:
    section = get_section(product.fetch(PLANNER), "# Available Tools")
    assert section.endswith(f"{FAIL_BLOCK}\n\n{PLANNING_TOOLS}")


def test_without_planning_tools_their_heading_is_left_out(product: Product) -> None:
    assert "planning" not in product.fetch(BARE)


def test_return_and_fail_follow_the_tools_and_are_there_without_any(product: Product) -> None:
    tools = f"# Available Tools\n\n## Tools you can call\n\n{ENDING_TOOLS}"
    assert get_section(product.fetch(BARE), "# Available Tools") == tools


def test_a_single_turn_has_no_return_and_fail(product: Product) -> None:
    assert get_section(product.fetch(EVALUATOR), "# Available Tools") == "# Available Tools"
    product.edit(f"agents/{EVALUATOR}", tools=["search"])
    section = get_section(product.fetch(EVALUATOR), "# Available Tools")
    assert section == f"# Available Tools\n\n## Tools you can call\n\n{SEARCH_BLOCK}"


def test_a_tool_named_return_is_reported(product: Product) -> None:
    product.create("tools", name="return", description="Give back.")
    product.edit(f"agents/{BARE}", tools=["return"])
    product.fetch(BARE)
    assert product.warnings == ["tools[0].name: return is the name of a tool that every agent has"]


def test_a_signature_without_a_name_gets_the_name_of_the_tool(product: Product) -> None:
    text = product.render(BARE, tools=[{"name": "add", "signature": "(a :int,b :int?)->:int"}])
    assert "### add\n```\nadd(a :int, b :int?) -> :int\n```\n" in text


def test_without_a_signature_it_is_derived_from_the_parameters(product: Product) -> None:
    properties = {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "user": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    }
    parameters = {"type": "object", "properties": properties, "required": ["query", "tags"]}
    text = product.render(BARE, tools=[{"name": "find", "parameters": parameters}])
    assert "find(query :string, limit :int?, tags [:string], user {id :int}?) -> :any" in text


def test_description_source_1_is_the_explicit_description(product: Product) -> None:
    product.create("tools", name="mail", agent=EMAIL_AGENT, description="Explicit.", snippet="Short.")
    product.edit(f"agents/{BARE}", tools=["mail"])
    text = product.fetch(BARE)
    assert "-> {summary :string, _ids [:int]}\n```\nExplicit.\n\n" in text
    assert "Short." not in text
    assert "Specialized" not in text


def test_description_source_2_is_the_short_text_of_the_tool(product: Product) -> None:
    product.create("tools", name="mail", agent=EMAIL_AGENT, snippet="Short.")
    product.edit(f"agents/{BARE}", tools=["mail"])
    text = product.fetch(BARE)
    assert "-> {summary :string, _ids [:int]}\n```\nShort.\n\n" in text
    assert "Specialized" not in text


def test_description_source_3_is_the_description_of_a_tool_that_the_call_defines(product: Product) -> None:
    text = product.render(BARE, tools=[{"name": "judge", "description": "Ask a model."}])
    assert "### judge\n```\njudge() -> :any\n```\nAsk a model.\n\n" in text


def test_description_source_4_is_derived_from_the_prompt_of_the_agent(product: Product) -> None:
    assert EMAIL_AGENT_BLOCK in product.fetch(PLANNER)
    settings = f"prompt-settings/agents/{EMAIL_AGENT}"
    product.put(settings, mission=f"# Mail\n\nSort mail. Stop.\n\n{RETURN_FORMAT}")
    block = "email_agent(prompt :string) -> {count :int, draft_ids [:int]}\n```\nSort mail.\n\n"
    assert block in product.fetch(PLANNER)


def test_a_description_of_the_agent_precedes_its_prompt(product: Product) -> None:
    product.edit(f"agents/{EMAIL_AGENT}", description="Handles mail.")
    text = product.fetch(PLANNER)
    assert "-> {summary :string, _ids [:int]}\n```\nHandles mail.\n\n" in text
    assert "Specialized" not in text


def test_an_agent_as_an_active_tool_can_be_called(product: Product) -> None:
    product.edit(f"agents/{PLANNER}", tools=["email_agent"], planning_tools=[])
    section = get_section(product.fetch(PLANNER), "# Available Tools")
    assert section.startswith(
        f"# Available Tools\n\n## Tools you can call\n\n{EMAIL_AGENT_BLOCK}\n\n### return"
    )


def test_a_call_cannot_make_a_planning_tool_callable(product: Product) -> None:
    text = product.render(PLANNER, tools=["email_agent"])
    assert text.count(EMAIL_AGENT_BLOCK) == 1
    assert PLANNING_TOOLS in text
    assert product.warnings == ["The tool email_agent of the call has no definition."]


# Section 5: PTC-Lisp Reference


def get_topic(product: Product, heading: str) -> str:
    """Return one topic of the language reference."""
    reference = get_section(product.fetch(BARE), "# PTC-Lisp Quick Reference")
    return reference.split(f"{heading}\n")[1].partition("\n\n## ")[0]


def test_the_reference_has_five_topics_in_order(product: Product) -> None:
    reference = get_section(product.fetch(BARE), "# PTC-Lisp Quick Reference")
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
def test_a_topic_has_one_entry_for_each_subject(product: Product, heading: str, subjects: list[str]) -> None:
    entries = get_topic(product, heading).splitlines()
    assert len(entries) == len(subjects)
    for entry, subject in zip(entries, subjects, strict=True):
        assert entry.startswith("- ")
        assert subject in entry


def test_an_entry_has_an_example_where_the_seed_has_one(product: Product) -> None:
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
        if not re.search(form, get_topic(product, heading))
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
def test_three_patterns_are_in_one_code_block(product: Product, index: int, functions: list[str]) -> None:
    topic = get_topic(product, "## Common Patterns")
    assert topic.startswith("```clojure\n;; ")
    assert topic.endswith("\n```")
    patterns = topic.removeprefix("```clojure\n").removesuffix("\n```").split("\n\n")
    assert len(patterns) == 3
    assert patterns[index].startswith(";; ")
    assert patterns[index].count("(") == patterns[index].count(")")
    assert [function for function in functions if function not in patterns[index]] == []


# Section 6: Output Format


@pytest.mark.parametrize("agent", [PLANNER, EVALUATOR])
def test_output_format(product: Product, agent: str) -> None:
    assert get_section(product.fetch(agent), "# Output Format") == OUTPUT_FORMAT


# Section 7: Mission Prompt


def test_mission_of_settings_with_its_placeholder_expanded(product: Product) -> None:
    product.put(settings_path(BARE), mission=f"{TEMPLATE}\n\n{RETURN_FORMAT}", sample_data=USER)
    assert get_section(product.fetch(BARE), "# Mission") == MISSION


def test_mission_of_a_call_with_its_placeholder_expanded(product: Product) -> None:
    text = product.render(BARE, mission=f"{TEMPLATE}\n\n{RETURN_FORMAT}", data=USER)
    assert get_section(text, "# Mission") == MISSION


def test_the_result_type_of_the_signature_ends_the_mission(product: Product) -> None:
    assert get_section(product.fetch(PLANNER), "# Mission") == MISSION
    signature = "(user {name :string}) -> {count :int, draft_ids [:int]}"
    text = product.render(BARE, mission=TEMPLATE, data=USER, signature=signature)
    assert get_section(text, "# Mission") == MISSION


def test_a_return_format_of_the_mission_is_not_repeated(product: Product) -> None:
    text = product.render(PLANNER, mission="Go.\n\nReturn format: :int")
    assert get_section(text, "# Mission") == "# Mission\n\nGo.\n\nReturn format: :int"


def test_placeholders_get_the_data_of_the_call(product: Product) -> None:
    text = product.render(PLANNER, data={"user": {"name": "Bob"}})
    assert get_section(text, "# Mission") == MISSION.replace("Alice", "Bob")


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        ('as "is"\n| it', 'as "is"\n| it'),
        (7, "7"),
        (["a", 2, 3, 4], '["a", 2, 3, 4]'),
        ({"id": 1, "_pin": 2}, "{id: 1, _pin: [Hidden]}"),
        ("{{other}}", "{{other}}"),
    ],
    ids=["text", "number", "whole list", "hidden field", "never expanded again"],
)
def test_how_a_placeholder_is_expanded(product: Product, value: Any, expanded: str) -> None:
    text = product.render(BARE, mission="For {{ value }}!", data={"value": value, "other": "no"})
    assert text.endswith(f"# Mission\n\nFor {expanded}!")


def test_a_placeholder_without_a_value_stays_and_is_reported(product: Product) -> None:
    text = product.render(BARE, mission="For {{user.name}}!", data={"user": {}})
    assert text.endswith("# Mission\n\nFor {{user.name}}!")
    assert "mission: there is no value for {{user.name}}" in product.warnings


def test_a_placeholder_of_a_hidden_field_is_refused(product: Product) -> None:
    body = {"mission": "Print {{_token}}.", "data": CONTEXT}
    answer = product.bot.post(f"agents/{BARE}/channels/{CHANNEL}/prompt:render", body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/mission")
    assert answer.json()["detail"] == "mission: the placeholder {{_token}} names a hidden field"


def test_a_stored_mission_with_such_a_placeholder_is_reported_and_not_served(product: Product) -> None:
    before = product.fetch(BARE)
    product.put(settings_path(BARE), mission="Print {{_token}}.", sample_data=CONTEXT)
    assert product.fetch(BARE) == before
    [prompt] = product.call("GET", f"prompts?agent={BARE}")["items"]
    assert prompt["problem"] == "Not built: mission: the placeholder {{_token}} names a hidden field"


def test_without_a_mission_the_instructions_are_the_mission(product: Product) -> None:
    product.edit(f"agents/{BARE}", instructions="Tidy up for {{user.name}}.")
    text = product.render(BARE, data=USER)
    assert get_section(text, "# Mission") == "# Mission\n\nTidy up for Alice."
    text = product.render(BARE, mission="Go.")
    assert get_section(text, "# Mission") == "# Mission\n\nGo."
    assert "The layout does not use instructions." in product.warnings


# Complete Template


def test_the_complete_prompt_of_an_agent(product: Product) -> None:
    product.put(
        settings_path(PLANNER),
        mission=TEMPLATE.replace("user.name", "user_name"),
        signature="(user_id :int, emails [{id :int, subject :string}], user_name :string, _token :string)"
        " -> {count :int, draft_ids [:int]}",
        sample_data={"user_id": 123, "emails": EMAILS, "user_name": "Alice", "_token": "s3cret"},
        list_sample=1,
    )
    text = product.fetch(PLANNER)
    inventory = INVENTORY.replace(
        "| `ctx/_token`", '| `ctx/user_name` | `:string` | `"Alice"` |\n| `ctx/_token`'
    )
    assert text == "\n\n".join(
        [
            AGENT_ROLE,
            "\n".join(["# Rules", "", *RULES]),
            inventory,
            "# Available Tools",
            CALLABLE_TOOLS,
            PLANNING_TOOLS,
            get_section(text, "# PTC-Lisp Quick Reference"),
            OUTPUT_FORMAT,
            MISSION,
        ]
    )
    assert product.warnings == []


def test_the_complete_prompt_of_a_single_turn_without_context_tools_and_mission(product: Product) -> None:
    text = product.fetch(EVALUATOR)
    assert text == "\n\n".join(
        [
            SINGLE_TURN_ROLE,
            "\n".join(["# Rules", "", *RULES[:5]]),
            "# Data Inventory",
            "# Available Tools",
            get_section(text, "# PTC-Lisp Quick Reference"),
            OUTPUT_FORMAT,
            "# Mission",
        ]
    )


def test_a_single_turn_with_tools_and_a_mission_has_the_same_role(product: Product) -> None:
    product.edit(f"agents/{EVALUATOR}", tools=["search"], instructions="Go.")
    text = product.fetch(EVALUATOR)
    assert text.startswith(f"{SINGLE_TURN_ROLE}\n\n# Rules")
    assert text.endswith("\n\n# Mission\n\nGo.")


def test_the_mode_is_agent_unless_a_setting_says_single_turn(product: Product) -> None:
    assert AGENT_ROLE in product.fetch(BARE)
    product.put("prompt-settings/workspace", mode="single_turn")
    assert SINGLE_TURN_ROLE in product.fetch(BARE)
    product.put(settings_path(BARE), mode="agent")
    assert AGENT_ROLE in product.fetch(BARE)


def test_the_mode_of_a_call_precedes_the_setting(product: Product) -> None:
    assert SINGLE_TURN_ROLE in product.render(BARE, mode="single_turn")
    product.put(settings_path(BARE), mode="single_turn")
    assert AGENT_ROLE in product.render(BARE, mode="agent")
    assert SINGLE_TURN_ROLE in product.fetch(BARE)


# Token Budget Considerations


@pytest.mark.parametrize(
    ("name", "figure"), [("role", 50), ("rules", 80), ("reference", 400), ("output_format", 50)]
)
def test_tokens_of_fixed_sections_are_near_the_table(product: Product, name: str, figure: int) -> None:
    bare, planner = get_tokens(product, BARE), get_tokens(product, PLANNER)
    assert bare[name] == planner[name]
    assert is_near(bare[name], figure)


def test_tokens_of_the_inventory_are_near_10_per_field(product: Product) -> None:
    values = {f"field_{number}": number for number in range(50)}
    types = ", ".join(f"{name} :int" for name in values)
    product.put(settings_path(BARE), sample_data={"field_0": 0}, signature="(field_0 :int)")
    one = get_tokens(product, BARE)["data"]
    product.put(settings_path(BARE), sample_data=values, signature=f"({types})")
    assert is_near((get_tokens(product, BARE)["data"] - one) / 49, 10)


def test_tokens_of_the_tools_are_near_30_per_tool(product: Product) -> None:
    tools = get_tokens(product, PLANNER)["tools"] - get_tokens(product, BARE)["tools"]
    assert is_near(tools / 2, 30)


def test_tokens_of_the_mission_are_those_of_the_users_text(product: Product) -> None:
    product.put(settings_path(BARE), mission="word " * 100)
    assert 100 <= get_tokens(product, BARE)["mission"] <= 110


def test_the_reference_can_be_trimmed_and_keeps_complete_topics(product: Product) -> None:
    product.put(settings_path(BARE), section_limits={"reference": 800})
    for text in (product.fetch(BARE), product.render(EVALUATOR, limits={"sections": {"reference": 800}})):
        reference = get_section(text, "# PTC-Lisp Quick Reference")
        assert "- `fn` makes a function" in reference
        assert "## Common Patterns" not in reference
        assert "characters left out]" in reference
        assert any("characters of reference were cut" in warning for warning in product.warnings)


# Optimization Options


def test_minimal_mode_skips_the_reference_by_setting(product: Product) -> None:
    product.put(settings_path(BARE), omit_reference=True)
    assert find_headings(product.fetch(BARE)) == [name for name in HEADINGS if "Reference" not in name]


def test_minimal_mode_skips_the_reference_by_request(product: Product) -> None:
    text = product.render(BARE, limits={"omit_reference": True})
    assert find_headings(text) == [name for name in HEADINGS if "Reference" not in name]
    product.put(settings_path(BARE), omit_reference=True)
    assert find_headings(product.render(BARE, limits={"omit_reference": False})) == HEADINGS


def test_tool_trimming_shows_only_the_tools_that_the_call_names_in_its_order(product: Product) -> None:
    text = product.render(PLANNER, tools=["get_user"])
    assert f"## Tools you can call\n\n{GET_USER_BLOCK}\n\n{ENDING_TOOLS}" in text
    assert "### search" not in text
    text = product.render(PLANNER, tools=["get_user", "search"])
    assert f"{GET_USER_BLOCK}\n\n{SEARCH_BLOCK}\n\n{RETURN_BLOCK}" in text
    assert f"## Tools you can call\n\n{ENDING_TOOLS}" in product.render(PLANNER, tools=[])


def test_data_sampling_shows_the_first_3_items_and_the_count(product: Product) -> None:
    assert list_samples(product.render(BARE, data={"list": [1, 2, 3, 4, 5]})) == [
        "`[1, 2, 3, ...]` (5 items)"
    ]
    assert list_samples(product.render(BARE, data={"list": [1, 2, 3]})) == ["`[1, 2, 3]`"]
    assert product.warnings == ["data.signature: has no type for list"]


def test_list_sample_is_a_setting_and_a_limit_of_the_request(product: Product) -> None:
    product.put(settings_path(BARE), sample_data={"list": [1, 2, 3, 4, 5]}, list_sample=2)
    assert list_samples(product.fetch(BARE)) == ["`[1, 2, ...]` (5 items)"]
    assert list_samples(product.render(BARE, limits={"list_sample": 4})) == ["`[1, 2, 3, 4, ...]` (5 items)"]
    assert list_samples(product.render(BARE, limits={"list_sample": 5})) == ["`[1, 2, 3, 4, 5]`"]


def test_strings_are_cut_after_500_characters(product: Product) -> None:
    assert list_samples(product.render(BARE, data={"text": "a" * 500})) == [f'`"{"a" * 500}"`']
    assert list_samples(product.render(BARE, data={"text": "a" * 501})) == [f'`"{"a" * 500}…"`']
    assert "The samples of text show only a part of the data." in product.warnings


def test_string_truncate_is_a_setting_and_a_limit_of_the_request(product: Product) -> None:
    product.put(settings_path(BARE), sample_data={"map": {"text": "abcdef"}}, string_truncate=3)
    assert list_samples(product.fetch(BARE)) == ['`{text: "abc…"}`']
    assert list_samples(product.render(BARE, limits={"string_truncate": 5})) == ['`{text: "abcde…"}`']


def test_the_three_limits_of_the_seed_together(product: Product) -> None:
    limits = {"list_sample": 3, "string_truncate": 500, "omit_reference": True}
    data = {"list": [1, 2, 3, 4], "text": "a" * 501}
    by_request = product.render(BARE, data=data, limits=limits)
    product.put(settings_path(BARE), sample_data=data, **limits)
    assert product.fetch(BARE) == by_request
    assert list_samples(by_request) == ["`[1, 2, 3, ...]` (4 items)", f'`"{"a" * 500}…"`']
    assert "Quick Reference" not in by_request


# Error Recovery Prompts

ERROR = {"error": "parse_error", "message": "Unexpected token at position 45"}


def test_the_error_of_the_previous_turn_is_appended(product: Product) -> None:
    text = product.render(PLANNER, previous_error=ERROR)
    assert text == (
        f"{product.fetch(PLANNER)}\n\n"
        "# Previous Turn Error\n\n"
        "Your previous program failed with:\n"
        "- **Error**: parse_error\n"
        "- **Message**: Unexpected token at position 45\n"
        "- **Context**: `ctx/fail` contains the full error details\n\n"
        "Please fix the issue and try again."
    )


def test_without_an_error_nothing_is_appended(product: Product) -> None:
    assert product.render(PLANNER) == product.fetch(PLANNER)
    assert product.fetch(PLANNER).endswith(f"\n\n{MISSION}")


def test_a_call_can_name_its_own_context_and_leave_out_the_message(product: Product) -> None:
    text = product.render(PLANNER, previous_error={"error": "timeout", "context": "see `ctx/log`"})
    assert "failed with:\n- **Error**: timeout\n- **Context**: see `ctx/log`\n\nPlease fix" in text


def test_a_message_of_several_lines_stays_in_its_entry(product: Product) -> None:
    text = product.render(BARE, previous_error={"error": "crash", "message": "one\n- **Error**: two"})
    assert "- **Error**: crash\n- **Message**: one\n  - **Error**: two\n- **Context**" in text
