"""Tool signatures: all signatures of seed 004 round-trip; syntax errors name position and reason."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.assembly.errors import AssemblyError
from prompts.assembly.tool_signatures import (
    MAX_DEPTH,
    MAX_SIGNATURE_LENGTH,
    parse_context_signature,
    parse_tool_signature,
)
from tests.example_counts import examples
from tests.processor_time import measure_seconds

# Every signature in the seed.
SEED = [
    "search(query :string, limit :int?) -> [{id :int, title :string}]",
    "get_user(id :int) -> {name :string, email :string?}",
    "return(data :any) -> :exit-success",
    "fail(error {:reason :keyword, :message :string, :op :string?, :details :map?}) -> :exit-error",
    "email_agent(prompt :string) -> {summary :string, _ids [:int]}",
]


@pytest.mark.parametrize("text", SEED)
def test_a_signature_of_the_seed_reads_back_as_it_is_written(text):
    assert parse_tool_signature(text, "").text("other") == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("f()->:any", "f() -> :any"),
        ("  f ( a:int ,b [ :string ] ) \n->\t{ c :int } ", "f(a :int, b [:string]) -> {c :int}"),
        ("(a :int) -> :any", "named(a :int) -> :any"),
        ("f(a {b :int}?, c [:int]?) -> {}?", "f(a {b :int}?, c [:int]?) -> {}?"),
        ("mcp.server/get-user(größe :int) -> :any", "mcp.server/get-user(größe :int) -> :any"),
        ("f(ok? :bool) -> [[:int]]", "f(ok? :bool) -> [[:int]]"),
    ],
)
def test_spacing_is_brought_into_the_form_of_the_seed(text, written):
    assert parse_tool_signature(text, "").text("named") == written


@pytest.mark.parametrize(
    "text",
    [
        "{user_id :int, emails [{id :int, subject :string}], _token :string}",
        "(user_id :int, emails [{id :int, subject :string}], _token :string)",
        "{:user_id :int, :emails [{id :int, subject :string}], :_token :string}",
    ],
)
def test_a_context_signature_gives_the_type_of_each_key(text):
    assert parse_context_signature(text, "").types == {
        "user_id": ":int",
        "emails": "[{id :int, subject :string}]",
        "_token": ":string",
    }


@pytest.mark.parametrize("keys", ["(user_id :int)", "{user_id :int}", "{:user_id :int}"])
def test_a_context_signature_may_have_a_result_type(keys):
    signature = parse_context_signature(f"{keys}->{{count :int,draft_ids [:int]}}", "")
    assert signature == ({"user_id": ":int"}, "{count :int, draft_ids [:int]}")
    assert parse_context_signature(keys, "").returns == ""


@pytest.mark.parametrize("text", ["{}", "()"])
def test_an_empty_context_has_no_types(text):
    assert parse_context_signature(text, "").types == {}


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", 1, "expected a tool's name or '(', but the text ends"),
        ("search", 7, "expected '(', but the text ends"),
        ("f(a) -> :any", 4, "expected a type such as :string, found ')'"),
        ("f(a :int", 9, "expected ',' or ')', but the text ends"),
        ("f(a :int b :int) -> :any", 10, "expected ',' or ')', found 'b'"),
        ("f(a :int,) -> :any", 10, "expected a name, found ')'"),
        ("f(a :int)", 10, "expected '->', but the text ends"),
        ("f(a :int) ->", 13, "expected a type such as :string, but the text ends"),
        ("f() -> int", 8, "expected a type such as :string, found 'int'"),
        ("f() -> :", 8, "expected a type such as :string, found ':'"),
        ("f() -> []", 9, "expected a type such as :string, found ']'"),
        ("f() -> [:int", 13, "expected ']', but the text ends"),
        ("f() -> {a :int]", 15, "expected ',' or '}', found ']'"),
        ("f() -> :int extra", 13, "expected nothing more, found 'extra'"),
        ("f(a :int, a :int) -> :any", 11, "expected a name not used before, found 'a'"),
        ("f(7 :int) -> :any", 3, "expected a name, found '7'"),
        ("f(`a :int) -> :any", 3, "expected a name, found '`'"),
        ("f(: :int) -> :any", 3, "expected a name, found ':'"),
        ("f(\x00 :int) -> :any", 3, "expected a name, found '\\x00'"),
    ],
)
def test_a_syntax_error_names_position_and_reason(text, place, why):
    with pytest.raises(AssemblyError) as refused:
        parse_tool_signature(text, "tools[3].signature")
    assert str(refused.value) == f"tools[3].signature: does not parse at character {place}: {why}"


@pytest.mark.parametrize(
    "text", ["", "user_id :int", "[a :int]", "{a :int", "{a :int)", "(a :int) ->", "(a :int) :any"]
)
def test_a_context_signature_that_does_not_parse_is_named(text):
    with pytest.raises(AssemblyError, match=r"^data\.signature: does not parse at character \d+: expected "):
        parse_context_signature(text, "data.signature")


def test_brackets_may_be_as_deep_as_the_limit_and_no_deeper():
    deep = "[" * MAX_DEPTH + ":int" + "]" * MAX_DEPTH
    assert parse_tool_signature(f"f() -> {deep}", "").returns == deep
    with pytest.raises(AssemblyError, match=f"brackets at most {MAX_DEPTH} deep"):
        parse_tool_signature(f"f() -> [{deep}]", "")
    with pytest.raises(AssemblyError, match=f"brackets at most {MAX_DEPTH} deep"):
        parse_context_signature("{a " + "{a " * 5_000, "")


def test_a_signature_longer_than_any_may_be_is_refused():
    with pytest.raises(AssemblyError, match="longer than any signature may be"):
        parse_tool_signature("f" * (MAX_SIGNATURE_LENGTH + 1), "")


@pytest.mark.slow
@pytest.mark.parametrize("filler", [" ", "[", "{a ", "a", ":", "-", "?", ",", "x :int, "])
def test_reading_takes_no_longer_than_the_length_allows(filler):
    text = f"f({filler * (MAX_SIGNATURE_LENGTH // len(filler) - 2)}"

    def refuse() -> None:
        with pytest.raises(AssemblyError):
            parse_tool_signature(text, "")

    assert measure_seconds(refuse, 2) < 2


names = st.from_regex(r"\A[a-z_][a-z0-9_]{0,8}\Z")
marks = st.sampled_from(["", "?"])
kinds = st.recursive(
    st.builds(":{}{}".format, st.sampled_from(["int", "string", "exit-error"]), marks),
    lambda inner: (
        st.builds("[{}]{}".format, inner, marks)
        | st.builds(
            lambda fields, mark: (
                "{" + ", ".join(f"{name} {kind}" for name, kind in fields.items()) + "}" + mark
            ),
            st.dictionaries(names, inner, max_size=3),
            marks,
        )
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=examples(12, hard=100), deadline=None)
@given(names, st.dictionaries(names, kinds, max_size=3), kinds)
def test_whatever_is_written_in_the_form_of_the_seed_reads_back_the_same(name, fields, returns):
    arguments = ", ".join(f"{field} {kind}" for field, kind in fields.items())
    written = f"{name}({arguments}) -> {returns}"
    assert parse_tool_signature(written, "").text("other") == written
    assert parse_context_signature(f"({arguments}) -> {returns}", "") == (fields, returns)


@given(st.text(st.sampled_from("ab:?[]{}(),-> \n`7"), max_size=40) | st.text(max_size=40))
def test_any_text_at_all_parses_or_is_refused_by_name(text):
    for read in (parse_tool_signature, parse_context_signature):
        with contextlib.suppress(AssemblyError):
            read(text, "here")
