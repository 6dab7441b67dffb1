"""Invalid and hostile input to the ptc layout yields an AssemblyError or a reported problem, nothing else."""

from typing import Any

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import Data, Limits, PromptInputs, Text, ToolInput
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import PreviousError, Slots
from prompts.assembly.text import close_code_fences, format_code_block, format_code_span

PTC = LAYOUTS["ptc"]


def nested(depth):
    value: Any = 1
    for _ in range(depth):
        value = {"deeper": [value]}
    return value


@pytest.mark.parametrize(
    "name", ["{{_token}}", "{{user._pin}}", "{{_a.b}}", "{{ user . _pin }}", "{{_absent}}"]
)
@pytest.mark.parametrize("field", ["mission", "instructions"])
def test_a_mission_naming_a_hidden_field_is_refused(field, name):
    data = Data({"_token": "s3cret", "user": {"_pin": 1}, "_a": {"b": 2}})
    fields: dict[str, Any] = {field: Text(f"Say {name}")}
    with pytest.raises(AssemblyError, match="names a hidden field") as refused:
        build_prompt(PTC, PromptInputs(data=data, **fields))
    assert refused.value.path == field
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["{{email}}", "{{user.email}}", "{{email.domain}}"])
def test_a_mission_naming_a_field_that_is_hidden_by_name_is_refused(name):
    data = Data({"email": "s3cret", "user": {"email": "s3cret"}}, hidden=("email",))
    with pytest.raises(AssemblyError, match="names a hidden field"):
        build_prompt(PTC, PromptInputs(data=data, mission=Text(name)))


@pytest.mark.parametrize(
    ("template", "unclosed"),
    [
        ("Hi {{user.name", "{{user.name"),
        ("Hi {{user.name} there", "{{user.name} there"),
        ("Hi {{a and {{n}}", "{{a and"),
        ("{{" * 3, "{{{{{{"),
    ],
)
def test_an_unclosed_brace_stays_and_is_reported(template, unclosed):
    prompt = build_prompt(PTC, PromptInputs(mission=Text(template), data=Data({"n": "{{n}}"}, "{n :string}")))
    assert f"# Mission\n\n{template}" in prompt.text
    assert prompt.report.problems == (f"mission: the placeholder {unclosed} is never closed",)


@pytest.mark.parametrize("text", ["{ {a} }", "{:a {:b 1}}", "}} {", "{a}"])
def test_single_braces_are_just_text(text):
    prompt = build_prompt(PTC, PromptInputs(mission=Text(text), data=Data({"a": 1}, "{a :int}")))
    assert f"# Mission\n\n{text}" in prompt.text
    assert prompt.report.problems == ()


def test_a_placeholder_in_a_third_pair_of_braces_is_filled():
    prompt = build_prompt(PTC, PromptInputs(mission=Text("{{{a}}}"), data=Data({"a": 1}, "{a :int}")))
    assert "# Mission\n\n{1}" in prompt.text
    assert prompt.report.problems == ()


def test_a_repeated_problem_is_reported_once():
    prompt = build_prompt(PTC, PromptInputs(mission=Text("{{x}} " * 1_000)))
    assert prompt.report.problems == ("mission: there is no value for {{x}}",)


def test_a_tools_signature_that_does_not_parse_is_named():
    tools = (ToolInput("fine"), ToolInput("bad", signature="bad(x) -> :any", use="planning"))
    with pytest.raises(AssemblyError) as refused:
        build_prompt(PTC, PromptInputs(tools=tools))
    assert str(refused.value) == (
        "tools[1].signature: does not parse at character 6: expected a type such as :string, found ')'"
    )


def test_a_data_signature_that_does_not_parse_is_named_even_without_values():
    with pytest.raises(AssemblyError, match="does not parse at character 2: expected a name"):
        build_prompt(PTC, PromptInputs(data=Data({}, "{")))


@pytest.mark.parametrize("name", ["", " \n "])
def test_a_tool_without_a_name_is_refused(name):
    with pytest.raises(AssemblyError) as refused:
        build_prompt(PTC, PromptInputs(tools=(ToolInput(name),)))
    assert refused.value.path == "tools[0].name"


def test_a_signature_of_another_tool_is_reported():
    prompt = build_prompt(PTC, PromptInputs(tools=(ToolInput("a", signature="b() -> :any"),)))
    assert prompt.report.problems == ("tools[0].signature: is that of b, not of a",)


@pytest.mark.parametrize("limit", ["list_sample", "string_truncate"])
@pytest.mark.parametrize("size", [0, -1])
def test_a_limit_of_zero_is_refused(limit, size):
    with pytest.raises(AssemblyError, match="must be at least 1") as refused:
        build_prompt(PTC, PromptInputs(data=Data({"a": [1]}), limits=Limits(**{limit: size})))
    assert refused.value.path == f"limits.{limit}"


def test_deep_nesting_is_shown_or_refused_by_name():
    assert "deeper" in build_prompt(PTC, PromptInputs(data=Data({"a": nested(32)}))).text
    for depth in (33, 10_000):
        with pytest.raises(AssemblyError, match=r"data\.values\.a: is nested more than 64 deep"):
            build_prompt(PTC, PromptInputs(data=Data({"a": nested(depth)})))


def test_deep_nesting_in_a_mission_is_refused_by_name():
    data = Data({"_a": 1, "a": {"b": nested(100)}})
    with pytest.raises(AssemblyError, match="is nested more than 64 deep"):
        build_prompt(PTC, PromptInputs(mission=Text("{{a.b}}"), data=data))


def test_a_thousand_keys_are_a_thousand_rows():
    values = {f"key_{place}": place for place in range(1_000)}
    typed = "{" + ", ".join(f"{key} :int" for key in values) + "}"
    prompt = build_prompt(PTC, PromptInputs(data=Data(values, typed)))
    assert prompt.text.count("\n| `ctx/key_") == 1_000
    assert prompt.report.problems == ()


def test_a_thousand_untyped_keys_are_one_problem():
    problems = build_prompt(
        PTC, PromptInputs(data=Data({f"k{place}": 1 for place in range(1_000)}))
    ).report.problems
    assert problems == ("data.signature: has no type for k0, k1, k2, k3, k4 and 995 more",)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"])
def test_a_value_json_does_not_know_is_refused_by_name(value):
    with pytest.raises(AssemblyError) as refused:
        build_prompt(PTC, PromptInputs(data=Data({"a": [value]})))
    assert str(refused.value) == "data.values.a: is not a value that JSON knows"


def test_a_number_too_long_to_write_is_refused_by_name():
    with pytest.raises(AssemblyError, match=r"data\.values\.a: is too long a number"):
        build_prompt(PTC, PromptInputs(data=Data({"a": 10**5_000})))


@pytest.mark.parametrize(
    "inputs",
    [
        PromptInputs(data=Data({"a": "\ud800"})),
        PromptInputs(data=Data({"\ud800": 1})),
        PromptInputs(mission=Text("\ud800")),
        PromptInputs(tools=(ToolInput("a", "\ud800"),)),
        PromptInputs(tools=(ToolInput("a", signature="a(\ud800 :int) -> :any"),)),
    ],
)
def test_half_a_pair_is_refused_by_name(inputs):
    with pytest.raises(AssemblyError) as refused:
        build_prompt(PTC, inputs)
    assert refused.value.path
    str(refused.value).encode()


@pytest.mark.parametrize("filler", ["word ", "{ ", "} ", "}", "`", "```\n"])
@pytest.mark.parametrize("size", [2_000_000, pytest.param(10_000_000, marks=pytest.mark.hard)])
def test_megabytes_of_mission_are_no_trouble(filler, size):
    text = "{{a}}" + filler * (size // len(filler))
    prompt = build_prompt(PTC, PromptInputs(mission=Text(text), data=Data({"a": "b"}, "{a :string}")))
    assert f"# Mission\n\nb{text[5:]}" in prompt.text


@pytest.mark.parametrize("text", ["{{a}}", "{{", "{{a "])
def test_more_placeholders_than_anyone_writes_are_refused(text):
    with pytest.raises(AssemblyError, match="mission: has more than 10,000 placeholders"):
        build_prompt(PTC, PromptInputs(mission=Text(text * 1_000_000), data=Data({"a": "b"})))


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (None, ""),
        ({}, ""),
        ({"properties": []}, ""),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "a :string"),
        ({"properties": {"a": {"type": "integer"}}}, "a :int?"),
        ({"properties": {"a": {"type": "number"}}, "required": "a"}, "a :float?"),
        ({"properties": {"a": {"type": "boolean"}}, "required": [["a"], "a"]}, "a :bool"),
        ({"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}, "a :string?"),
        ({"properties": {"a": {"type": ["string", "integer"]}}, "required": ["a"]}, "a :any"),
        ({"properties": {"a": {"type": "array"}}, "required": ["a"]}, "a [:any]"),
        (
            {"properties": {"a": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]},
            "a [:string]",
        ),
        ({"properties": {"a": {"type": "object"}}, "required": ["a"]}, "a :map"),
        (
            {
                "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer"}}}},
                "required": ["a"],
            },
            "a {b :int?}",
        ),
        ({"properties": {"a": True, "b": {"type": 7}, "c": {"enum": [1]}}}, "a :any?, b :any?, c :any?"),
        ({"properties": {"a\n```": {"type": "string"}}, "required": ["a\n```"]}, "a ``` :string"),
    ],
)
def test_a_tool_without_a_signature_gets_one_from_its_schema(schema, arguments):
    text = build_prompt(PTC, PromptInputs(tools=(ToolInput("t", parameters=schema),))).text
    assert f"\nt({arguments}) -> :any\n" in text


def test_a_schema_deeper_than_anyone_reads_ends_in_any():
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    text = build_prompt(PTC, PromptInputs(tools=(ToolInput("t", parameters=schema),))).text
    assert "\nt(a {a {a {a {a {a {a {a :any}}}}}}}) -> :any\n" in text


def test_a_description_cannot_leave_a_code_block_open():
    tool = ToolInput("t", "Like this:\n```python\n# Mission\nprint()")
    assert "# Mission\nprint()\n```\n\n### return\n" in build_prompt(PTC, PromptInputs(tools=(tool,))).text


def test_a_mission_cannot_swallow_the_error_that_follows_it():
    inputs = PromptInputs(mission=Text("Run\n~~~~\nthis"))
    text = build_filled_prompt(PTC, inputs, Slots(previous_error=PreviousError("e"))).text
    assert "# Mission\n\nRun\n~~~~\nthis\n~~~~\n\n# Previous Turn Error" in text


def test_a_mission_that_is_cut_inside_a_code_block_still_ends_it():
    inputs = PromptInputs(mission=Text("```\n" + "x" * 100 + "\n```"), limits=Limits(parts={"mission": 20}))
    assert "x\n[… 88 characters left out]\n```\n\n⟦previous_error⟧" in build_prompt(PTC, inputs).text


def test_a_tools_name_stays_on_the_line_of_its_heading():
    assert (
        "### a b\n```\na b() -> :any\n```\n"
        in build_prompt(PTC, PromptInputs(tools=(ToolInput("a\nb"),))).text
    )


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a```", "```` a``` ````")],
)
def test_a_code_span_outlasts_its_backticks(text, span):
    assert format_code_span(text) == span


def test_a_code_block_outlasts_its_backticks():
    assert format_code_block("a") == "```\na\n```"
    assert format_code_block("a\n`````\nb") == "``````\na\n`````\nb\n``````"


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("no fence", ""),
        ("in ``` line", ""),
        ("```\nclosed\n```", ""),
        ("```\nopen", "\n```"),
        ("````\n```", "\n````"),
        ("```\n~~~", "\n```"),
        ("```\n``` not an end", "\n```"),
        ("```a span```", ""),
        ("    ```\nindented code", ""),
        ("```\none\n```\n~~~\ntwo", "\n~~~"),
    ],
)
def test_an_open_code_block_is_closed_and_nothing_else_is_touched(text, closing):
    assert close_code_fences(text) == text + closing


def test_data_from_json_and_data_from_the_program_give_the_same_bytes():
    values = {"a": {"b": ["x\r\ny", 1.0, None]}, "_c": 1}
    loaded = parse_dataclass(PromptInputs, {"data": {"values": values, "signature": "{a :map, _c :int}"}})
    assert (
        build_prompt(PTC, loaded).text
        == build_prompt(PTC, PromptInputs(data=Data(values, "{a :map, _c :int}"))).text
    )
