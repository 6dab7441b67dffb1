"""The ptc layout against seed 004: structure, samples, tables, options and error block."""

from dataclasses import replace

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import Data, Limits, PromptInputs, Text, ToolInput
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.report import OmissionReason
from prompts.assembly.segments import RELEASE, TURN, USER, Origin
from prompts.assembly.slots import PreviousError, Slots, build_slot_spans, fill_spans
from prompts.publishing.builds.tokens import count_tokens as tokens

PTC = LAYOUTS["ptc"]
SEARCH = ToolInput(
    "search",
    "Search for items matching query. Limit defaults to 10.",
    signature="search(query :string, limit :int?) -> [{id :int, title :string}]",
    origin=Origin("tool", "1", 4),
)
GET_USER = ToolInput(
    "get_user",
    "Fetch user by ID. Returns user object or nil if not found.",
    signature="get_user(id :int) -> {name :string, email :string?}",
    origin=Origin("tool", "2", 1),
)
EMAIL_AGENT = ToolInput(
    "email_agent",
    "Specialized agent for email processing.",
    signature="email_agent(prompt :string) -> {summary :string, _ids [:int]}",
    use="planning",
    origin=Origin("tool", "3", 1),
)
EMAILS = [{"id": 1, "subject": "Hello"}] + [{"id": place, "subject": "More"} for place in (2, 3, 4, 5)]
DATA = Data(
    {"user_id": 123, "emails": EMAILS, "_token": "s3cret"},
    "{user_id :int, emails [{id :int, subject :string}], _token :string}",
    Origin("data", "9", 2),
)
SINGLE_TURN = PromptInputs(mode="single_turn")
NOTE = (
    "Note: Firewalled fields (prefixed with `_`) show `[Hidden]` in the Sample column\n"
    "but are available in your program at runtime."
)


def section(prompt, name):
    """Return the text of one part, without the blank line before it."""
    return "".join(segment.text for segment in prompt.segments if segment.section == name).strip("\n")


def render_section(name, **inputs):
    return section(build_prompt(PTC, PromptInputs(**inputs)), name)


def inventory(values, signature="", **limits):
    return render_section("data", data=Data(values, signature), limits=Limits(**limits))


def samples(values, **limits):
    """Return the sample column of the inventory of these values."""
    rows = [line for line in inventory(values, **limits).splitlines() if line.startswith("| `ctx/")]
    return [row.removesuffix(" |").split(" | `:any` | ")[1] for row in rows]


def headings(text):
    return [line for line in text.splitlines() if line.startswith("# ")]


# Prompt Structure


def test_structure_the_seven_sections_are_in_order():
    text = build_prompt(PTC, PromptInputs(data=DATA, tools=(SEARCH,), mission=Text("Go."))).text
    assert headings(text) == [
        "# Role",
        "# Rules",
        "# Data Inventory",
        "# Available Tools",
        "# PTC-Lisp Quick Reference",
        "# Output Format",
        "# Mission",
    ]


def test_structure_sections_are_one_blank_line_apart():
    text = build_prompt(PTC, PromptInputs(data=DATA, tools=(SEARCH,), mission=Text("Go."))).text
    assert "\n\n\n" not in text
    assert all(f"\n\n{heading}\n\n" in f"\n\n{text}" for heading in headings(text))


def test_structure_headings_stay_when_there_is_nothing_to_put_under_them():
    text = fill_spans(build_slot_spans(build_prompt(PTC, SINGLE_TURN).segments), Slots())
    assert "\n\n# Data Inventory\n\n# Available Tools\n\n# PTC-Lisp Quick Reference\n\n" in text
    assert text.endswith("\n\n# Mission")


def test_structure_what_ptc_has_no_place_for_is_named():
    inputs = PromptInputs(soul=Text("Be kind."), data=DATA, tools=(SEARCH, EMAIL_AGENT), mission=Text("Go."))
    assert build_prompt(PTC, inputs).report.lost == ("soul",)


# Section 1: Role & Purpose


def test_role_of_an_agent():
    assert render_section("role") == (
        "# Role\n\n"
        "You are a PTC-Lisp program generator. Your task is to write programs that accomplish\n"
        "the user's mission by calling tools and processing data.\n\n"
        "You MUST respond with a single PTC-Lisp program in a ```clojure code block.\n"
        "The program will be executed, and you may see results in subsequent turns.\n\n"
        "Your mission ends ONLY when you call the `return` or `fail` tool."
    )


def test_role_single_turn_variant():
    assert render_section("role", mode="single_turn") == (
        "# Role\n\n"
        "You are a PTC-Lisp expression evaluator. Evaluate the given expression and return\n"
        "the result directly. No `return` call is needed - your expression result is the answer."
    )


# Section 2: Environment Rules

RULES = [
    "1. Respond with EXACTLY ONE ```clojure code block",
    "2. Do not include explanatory text outside the code block",
    '3. Use `(call "tool-name" args)` to invoke tools',
    "4. Use `ctx/key` to access context data",
    "5. Use `memory/key` or `(memory/get :key)` for persistent state",
    "6. Call `(return result)` when the mission is complete",
    '7. Call `(fail {:reason :keyword :message "..."})` on unrecoverable errors',
]


def test_rules_an_agent_gets_all_seven():
    assert render_section("rules") == "\n".join(["# Rules", "", *RULES])


def test_rules_a_single_turn_drops_rules_6_and_7():
    assert render_section("rules", mode="single_turn") == "\n".join(["# Rules", "", *RULES[:5]])


# Section 3: Data Inventory


def test_inventory_the_sample_of_the_seed():
    table = render_section("data", data=DATA, limits=Limits(list_sample=1))
    assert table == (
        "# Data Inventory\n\n"
        "Available in `ctx/`:\n\n"
        "| Key | Type | Sample |\n"
        "|-----|------|--------|\n"
        "| `ctx/user_id` | `:int` | `123` |\n"
        "| `ctx/emails` | `[{id :int, subject :string}]` |"
        ' `[{id: 1, subject: "Hello"}, ...]` (5 items) |\n'
        "| `ctx/_token` | `:string` | [Hidden] |\n\n" + NOTE
    )


def test_inventory_the_context_signature_may_be_in_round_brackets():
    assert "| `ctx/n` | `:int` | `1` |" in inventory({"n": 1}, "(n :int)")


def test_inventory_keys_are_in_the_order_of_the_values():
    table = inventory({"b": 1, "a": 2}, "{a :int, b :int}")
    assert table.index("ctx/b") < table.index("ctx/a")


def test_inventory_a_key_the_signature_leaves_out_is_any_and_reported():
    prompt = build_prompt(PTC, PromptInputs(data=Data({"a": 1, "b": 2}, "{a :int}")))
    assert "| `ctx/b` | `:any` | `2` |" in section(prompt, "data")
    assert prompt.report.problems == ("data.signature: has no type for b",)


def test_inventory_a_type_without_its_value_is_reported_unless_it_may_be_absent():
    prompt = build_prompt(PTC, PromptInputs(data=Data({"a": 1}, "{a :int, b :int, c :int?, d [:int]?}")))
    assert prompt.report.problems == ("data.signature: promises values that are not there: b",)


def test_inventory_the_note_is_under_every_table():
    assert inventory({"a": 1}).endswith(f"\n\n{NOTE}")


def test_inventory_hidden_fields_are_hidden_at_any_depth():
    values = {"_key": "s3cret", "user": {"_pin": "s3cret", "cards": [{"_cvc": "s3cret", "ok": True}]}}
    assert samples(values) == ["[Hidden]", "`{_pin: [Hidden], cards: [{_cvc: [Hidden], ok: true}]}`"]


def test_inventory_names_on_the_list_are_hidden_like_names_with_an_underscore():
    values = {"email": "s3cret", "user": {"email": "s3cret", "cards": [{"cvc": "s3cret", "ok": True}]}}
    text = render_section("data", data=Data(values, hidden=("email", "cvc")))
    assert "s3cret" not in text
    assert "| `ctx/email` | `:any` | [Hidden] |" in text
    assert "`{email: [Hidden], cards: [{cvc: [Hidden], ok: true}]}`" in text
    assert "Note: Firewalled fields (prefixed with `_`, or hidden by name) show `[Hidden]`" in text


@pytest.mark.parametrize("template", ["{{email}}", "{{user.email}}", "{{email.domain}}"])
def test_mission_a_placeholder_that_names_a_listed_field_is_refused(template):
    data = Data({"email": "s3cret", "user": {"email": "s3cret"}}, hidden=("email",))
    with pytest.raises(AssemblyError, match="names a hidden field"):
        render_section("mission", mission=Text(template), data=data)
    text = render_section("mission", mission=Text("{{user}}"), data=data)
    assert text == "# Mission\n\n{email: [Hidden]}"


@pytest.mark.parametrize(
    ("value", "sample"),
    [
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
    ],
)
def test_inventory_how_a_value_is_shown(value, sample):
    assert samples({"key": value}) == [sample]


# Section 4: Tool Schemas

ENDINGS = (
    "### return\n"
    "```\n"
    "return(data :any) -> :exit-success\n"
    "```\n"
    "Complete the mission successfully. Data must match your mission's signature.\n\n"
    "### fail\n"
    "```\n"
    "fail(error {:reason :keyword, :message :string, :op :string?, :details :map?}) -> :exit-error\n"
    "```\n"
    "Terminate with an error. Use when the mission cannot be completed."
)


def test_tools_the_sample_of_the_seed():
    prompt = build_prompt(PTC, PromptInputs(tools=(SEARCH, EMAIL_AGENT, GET_USER)))
    assert section(prompt, "tools") == (
        "# Available Tools\n\n"
        "## Tools you can call\n\n"
        "### search\n"
        "```\n"
        "search(query :string, limit :int?) -> [{id :int, title :string}]\n"
        "```\n"
        "Search for items matching query. Limit defaults to 10.\n\n"
        "### get_user\n"
        "```\n"
        "get_user(id :int) -> {name :string, email :string?}\n"
        "```\n"
        "Fetch user by ID. Returns user object or nil if not found.\n\n" + ENDINGS
    )
    assert section(prompt, "planning_tools") == (
        "## Tools for planning (do not call)\n\n"
        "These tools are shown for context but cannot be called directly:\n\n"
        "### email_agent\n"
        "```\n"
        "email_agent(prompt :string) -> {summary :string, _ids [:int]}\n"
        "```\n"
        "Specialized agent for email processing."
    )


def test_tools_the_planning_catalogue_follows_and_needs_planning_tools():
    assert f"{ENDINGS}\n\n## Tools for planning" in build_prompt(PTC, PromptInputs(tools=(EMAIL_AGENT,))).text
    assert "planning" not in build_prompt(PTC, PromptInputs(tools=(SEARCH,))).text


def test_tools_return_and_fail_are_there_for_an_agent_without_tools():
    assert render_section("tools") == f"# Available Tools\n\n## Tools you can call\n\n{ENDINGS}"


def test_tools_a_single_turn_has_nothing_to_end():
    assert render_section("tools", mode="single_turn") == "# Available Tools"
    with_tool = render_section("tools", mode="single_turn", tools=(SEARCH,))
    assert with_tool.startswith("# Available Tools\n\n## Tools you can call\n\n### search\n")
    assert with_tool.endswith(SEARCH.description)


@pytest.mark.parametrize(
    ("tool", "description"),
    [
        (ToolInput("t", "Explicit.", "Snippet."), "\nExplicit."),
        (ToolInput("t", "", "Snippet."), "\nSnippet."),
        (ToolInput("t", " \n", " ", signature=" "), ""),
    ],
    ids=["the description first", "else the snippet", "else nothing"],
)
def test_tools_description_sources_in_priority_order(tool, description):
    assert f"### t\n```\nt() -> :any\n```{description}\n\n### return" in render_section(
        "tools", tools=(tool,)
    )


def test_tools_tool_trimming_a_call_shows_only_the_tools_it_names_in_its_order():
    stored = build_prompt(PTC, PromptInputs(tools=(SEARCH, GET_USER, EMAIL_AGENT)))
    prompt = build_filled_prompt(
        PTC, PromptInputs(tools=(SEARCH, GET_USER, EMAIL_AGENT)), Slots(tools=("get_user",))
    )
    assert "### get_user" in prompt.text
    assert "### search" not in prompt.text
    assert ENDINGS in prompt.text
    assert "### email_agent" in prompt.text
    swapped = fill_spans(build_slot_spans(stored.segments), Slots(tools=("get_user", "search", "get_user")))
    assert swapped.index("### get_user") < swapped.index("### search")
    assert swapped.count("### get_user") == 1


def test_tools_a_call_without_tools_keeps_return_and_fail():
    prompt = build_filled_prompt(PTC, PromptInputs(tools=(SEARCH,)), Slots(tools=()))
    assert section(prompt, "tools") == f"# Available Tools\n\n## Tools you can call\n\n{ENDINGS}"
    alone = build_filled_prompt(PTC, PromptInputs(mode="single_turn", tools=(SEARCH,)), Slots(tools=()))
    assert section(alone, "tools") == "# Available Tools"


def test_tools_a_call_cannot_make_a_planning_tool_callable():
    prompt = build_filled_prompt(PTC, PromptInputs(tools=(EMAIL_AGENT,)), Slots(tools=("email_agent",)))
    assert "### email_agent" not in section(prompt, "tools")
    assert prompt.report.problems == ("The call names the tool email_agent, which has no definition.",)


# Section 5: PTC-Lisp Reference


def test_reference_has_the_five_headings_of_the_seed():
    lines = render_section("reference").splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "# PTC-Lisp Quick Reference",
        "## Syntax",
        "## Core Functions",
        "## Context Access",
        "## Collections",
        "## Common Patterns",
    ]


NAMES = "call let if do fn ctx/key memory/key map mapv filter reduce first last nth count empty?"


@pytest.mark.parametrize("name", [*NAMES.split(), "(memory/put :key value)"])
def test_reference_names_everything_the_seed_names(name):
    assert f"`{name}`" in render_section("reference")


@pytest.mark.parametrize("form", ["Clojure", "Keywords", "Maps", "Vectors", "function"])
def test_reference_covers_the_syntax_the_seed_lists(form):
    assert form in render_section("reference").split("## Core Functions")[0]


def test_reference_ends_with_three_patterns_in_one_closed_block():
    patterns = render_section("reference").split("## Common Patterns\n")[1]
    assert patterns.startswith("```clojure\n;; ")
    assert patterns.endswith("\n```")
    assert patterns.count("```") == 2
    assert patterns.count(";; ") == 3
    assert patterns.count("(") == patterns.count(")")


# Section 6: Output Format


@pytest.mark.parametrize("mode", ["agent", "single_turn"])
def test_output_format_to_the_letter(mode):
    assert render_section("output_format", mode=mode) == (
        "# Output Format\n\n"
        "Respond with a single ```clojure code block containing your program:\n\n"
        "```clojure\n"
        '(let [data (call "fetch" {:id ctx/user_id})]\n'
        "  (return {:result data}))\n"
        "```\n\n"
        "Do NOT include:\n"
        "- Explanatory text before or after the code\n"
        "- Multiple code blocks\n"
        "- Code outside of the ```clojure block"
    )


# Section 7: Mission Prompt

MISSION = Text(
    "Find all urgent emails for {{user.name}} and draft acknowledgment replies.\n\n"
    "Return format: {count :int, draft_ids [:int]}",
    Origin("mission", "5", 1),
)


def test_mission_the_sample_of_the_seed_with_its_placeholder_expanded():
    assert render_section("mission", mission=MISSION, data=Data({"user": {"name": "Alice"}})) == (
        "# Mission\n\n"
        "Find all urgent emails for Alice and draft acknowledgment replies.\n\n"
        "Return format: {count :int, draft_ids [:int]}"
    )


RESULT_DATA = Data({"user": {"name": "Alice"}}, "(user {name :string}) -> {count :int, draft_ids [:int]}")


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_mission_ends_with_the_result_type_of_the_signature(ending):
    mission = Text("Find all urgent emails for {{user.name}} and draft acknowledgment replies." + ending)
    assert render_section("mission", mission=mission, data=RESULT_DATA) == (
        "# Mission\n\n"
        "Find all urgent emails for Alice and draft acknowledgment replies.\n\n"
        "Return format: {count :int, draft_ids [:int]}"
    )


def test_mission_a_return_format_of_its_own_is_kept_and_not_repeated():
    mission = Text("Go.\n\n  Return format: a poem\nThen stop.")
    assert render_section("mission", mission=mission, data=RESULT_DATA) == f"# Mission\n\n{mission.text}"


def test_mission_words_about_a_return_format_inside_a_line_do_not_count_as_one():
    text = render_section("mission", mission=Text("Mind the Return format: it matters."), data=RESULT_DATA)
    assert text.endswith("matters.\n\nReturn format: {count :int, draft_ids [:int]}")


def test_mission_without_text_has_the_return_format_alone():
    assert render_section("mission", data=RESULT_DATA) == (
        "# Mission\n\nReturn format: {count :int, draft_ids [:int]}"
    )


def test_mission_the_return_format_is_outside_of_a_code_block_left_open():
    text = render_section("mission", mission=Text("Run\n```clojure\n(+ 1 2)"), data=RESULT_DATA)
    assert text.endswith("(+ 1 2)\n```\n\nReturn format: {count :int, draft_ids [:int]}")


def test_mission_the_return_format_comes_from_the_data():
    data = replace(RESULT_DATA, origin=Origin("prompt_settings", "4", 2))
    segments = build_prompt(PTC, PromptInputs(mission=Text("Go."), data=data)).segments
    assert [one.origin for one in segments if "Return format:" in one.text] == [data.origin]


def test_mission_an_agents_instructions_are_its_mission():
    assert render_section("mission", instructions=Text("Tidy up.")) == "# Mission\n\nTidy up."
    assert (
        render_section("mission", instructions=Text("Tidy up."), mission=Text(" ")) == "# Mission\n\nTidy up."
    )


def test_mission_takes_the_place_of_the_instructions_which_are_then_lost():
    prompt = build_prompt(PTC, PromptInputs(instructions=Text("Tidy up."), mission=Text("Go.")))
    assert section(prompt, "mission") == "# Mission\n\nGo."
    assert prompt.report.lost == ("instructions",)


@pytest.mark.parametrize(
    ("value", "text"),
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
def test_mission_values_are_inserted_as_text(value, text):
    data = Data({"x": value, "other": "secret"})
    assert render_section("mission", mission=Text("<{{x}}>"), data=data) == f"# Mission\n\n<{text}>"


@pytest.mark.parametrize("template", ["{{nobody}}", "{{user.age}}", "{{user.name.first}}", "{{}}", "{{nil}}"])
def test_mission_a_placeholder_without_a_value_stays_and_is_reported(template):
    inputs = PromptInputs(mission=Text(f"For {template}!"), data=Data({"user": {"name": "A"}, "nil": None}))
    prompt = build_prompt(PTC, inputs)
    assert section(prompt, "mission") == f"# Mission\n\nFor {template}!"
    assert prompt.report.problems[-1] == f"mission: there is no value for {template}"


def test_mission_spaces_inside_the_braces_do_not_matter():
    assert render_section("mission", mission=Text("{{ a . b }}{{a.b}}"), data=Data({"a": {"b": 1}})).endswith(
        "\n11"
    )


# Token Budget Considerations


@pytest.mark.parametrize(
    ("name", "about"), [("role", 50), ("rules", 80), ("reference", 400), ("output_format", 50)]
)
def test_budget_fixed_sections_are_about_as_large_as_the_table_says(name, about):
    assert about * 0.5 <= tokens(render_section(name)) <= about * 2


@pytest.mark.parametrize("name", ["role", "rules", "reference", "output_format"])
def test_budget_fixed_sections_are_the_same_whatever_the_inputs(name):
    assert render_section(name, data=DATA, tools=(SEARCH,), mission=MISSION) == render_section(name)


def test_budget_the_inventory_costs_little_per_field():
    values = {f"field_{place}": place for place in range(100)}
    assert tokens(inventory(values)) / 100 < 20


def test_budget_a_tool_costs_little():
    more = tokens(render_section("tools", tools=(SEARCH, GET_USER))) - tokens(render_section("tools"))
    assert more / 2 < 60


def test_budget_the_reference_can_be_trimmed_and_keeps_complete_topics():
    prompt = build_prompt(PTC, PromptInputs(limits=Limits(parts={"reference": 800})))
    kept = section(prompt, "reference")
    assert "## Core Functions" in kept
    assert "## Common Patterns" not in kept
    assert "characters left out]" in kept
    assert next(part.cut for part in prompt.report.parts if part.name == "reference") > 0


def test_budget_a_total_limit_cuts_rows_and_topics_and_never_a_table_or_a_fence():
    values = {f"field_{place}": "word " * 20 for place in range(50)}
    inputs = PromptInputs(data=Data(values), mission=Text("Go."), limits=Limits(total=4_000))
    prompt = build_prompt(PTC, inputs)
    assert len(prompt.text) <= 4_000
    assert all(line.endswith(" |") for line in prompt.text.splitlines() if line.startswith("| "))
    assert prompt.text.count("\n```") % 2 == 0
    assert "# Mission\n\nGo." in prompt.text


# Optimization Options


def test_option_minimal_mode_skips_the_reference_and_its_heading():
    prompt = build_prompt(PTC, PromptInputs(limits=Limits(omit_reference=True)))
    assert "Quick Reference" not in prompt.text
    assert "# Output Format" in prompt.text
    omitted = {part.name: part.omitted for part in prompt.report.parts if part.omitted}
    assert omitted["reference"] == OmissionReason.REFERENCE_OFF


def test_option_list_sample_shows_the_first_three_by_default():
    assert samples({"list": [1, 2, 3, 4, 5]}) == ["`[1, 2, 3, ...]` (5 items)"]
    assert samples({"list": [1, 2, 3, 4, 5]}, list_sample=2) == ["`[1, 2, ...]` (5 items)"]
    assert samples({"list": [1, 2, 3, 4, 5]}, list_sample=5) == ["`[1, 2, 3, 4, 5]`"]


def test_option_string_truncate_cuts_after_500_characters_by_default():
    assert samples({"text": "a" * 500}) == [f'`"{"a" * 500}"`']
    assert samples({"text": "a" * 501}) == [f'`"{"a" * 500}…"`']
    assert samples({"map": {"text": "abcd"}}, string_truncate=3) == ['`{text: "abc…"}`']


# Error Recovery Prompts


def failed(*error):
    return build_filled_prompt(
        PTC, PromptInputs(mission=Text("Go.")), Slots(previous_error=PreviousError(*error))
    ).text


def test_error_the_block_of_the_seed_is_appended():
    assert failed("parse_error", "Unexpected token at position 45").endswith(
        "# Mission\n\nGo.\n\n"
        "# Previous Turn Error\n\n"
        "Your previous program failed with:\n"
        "- **Error**: parse_error\n"
        "- **Message**: Unexpected token at position 45\n"
        "- **Context**: `ctx/fail` contains the full error details\n\n"
        "Please fix the issue and try again."
    )


def test_error_a_call_may_set_its_own_context_and_an_empty_message_is_omitted():
    assert "- **Error**: timeout\n- **Context**: see `ctx/log`\n" in failed("timeout", "", "see `ctx/log`")


def test_error_lines_of_a_message_stay_in_their_entry():
    text = failed("bad\nname", "one\n- **Error**: two\n```")
    assert "- **Error**: bad name\n- **Message**: one\n  - **Error**: two\n  ```\n- **Context**" in text


def test_error_and_tools_of_a_call_have_their_place_and_the_rest_of_it_is_lost():
    slots = Slots(tools=(), previous_error=PreviousError("timeout"), is_background=True, append="More.")
    assert build_filled_prompt(PTC, PromptInputs(), slots).report.lost == (
        "slots.is_background",
        "slots.append",
    )


def test_error_without_one_nothing_is_appended():
    assert build_filled_prompt(PTC, PromptInputs(mission=Text("Go.")), Slots()).text.endswith(
        "# Mission\n\nGo."
    )


# Origins and volatility


def test_every_row_tool_and_mission_knows_its_record():
    prompt = build_prompt(PTC, PromptInputs(data=DATA, tools=(SEARCH, EMAIL_AGENT), mission=MISSION))
    origins = {
        (segment.section, segment.origin) for segment in prompt.segments if segment.origin.kind != "layout"
    }
    assert origins == {
        ("data", DATA.origin),
        ("tools", SEARCH.origin),
        ("planning_tools", EMAIL_AGENT.origin),
        ("mission", MISSION.origin),
    }


def test_a_value_inside_a_mission_is_known_as_data():
    data = Data({"user": {"name": "Alice"}}, "{user :map}", DATA.origin)
    segments = build_prompt(PTC, PromptInputs(data=data, mission=MISSION)).segments
    assert [segment.text for segment in segments if segment.origin == DATA.origin][-1] == "Alice"


def test_data_changes_with_its_user_the_error_with_the_turn_and_the_rest_with_a_release():
    prompt = build_prompt(PTC, PromptInputs(data=DATA, tools=(SEARCH, EMAIL_AGENT), mission=MISSION))
    volatilities = {segment.section: segment.volatility for segment in prompt.segments}
    assert volatilities.pop("data") == USER
    assert volatilities.pop("previous_error") == TURN
    assert set(volatilities.values()) == {RELEASE}
