"""Front matter: what is rejected and why, and that each block keeps its source lines."""

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.text.front_matter import (
    FrontMatterError,
    TextProblem,
    join_front_matter,
    parse_front_matter,
    split_front_matter,
)
from tests.processor_time import measure_seconds

BOMB = "a: &a [lol, lol]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghij"))

# name: (head, line of the first problem, part of its message)
NASTY = {
    "alias bomb": (BOMB, 1, "Anchors and aliases"),
    "anchor": ("name: Ada\nvibe: &calm calm\n", 2, "Anchors and aliases"),
    "alias": ("name: *ada\n", 1, "Anchors and aliases"),
    "emphasis that looks like an alias": ("vibe: *bold*\n", 1, "in quotes"),
    "merge of an alias": ("base: &b {x: y}\nname:\n  <<: *b\n", 1, "Anchors and aliases"),
    "deep list": ("a: " + "[" * 5_000 + "]" * 5_000 + "\n", 1, "at most 20 levels deep"),
    "deep unclosed list": ("a: " + "[" * 5_000 + "\n", 1, "at most 20 levels deep"),
    "deep mapping": ("a: " + "{a: " * 3_000 + "}" * 3_000 + "\n", 1, "at most 20 levels deep"),
    "deep dashes": ("a:\n  " + "- " * 5_000 + "x\n", 2, "at most 20 levels deep"),
    "deep question marks": ("? " * 5_000 + "x\n", 1, "at most 20 levels deep"),
    "duplicate key": ("name: Ada\nvibe: dry\nname: Bob\n", 3, '"name" appears twice'),
    "duplicate key, quoted": ('name: Ada\n"name": Bob\n', 2, '"name" appears twice'),
    "duplicate key, nested": ("links:\n  home: a\n  home: b\n", 3, '"home" appears twice'),
    "python tag": ("name: !!python/object/apply:os.system [ls]\n", 1, "Tags are not allowed"),
    "custom tag": ("name: !secret x\n", 1, "Tags are not allowed"),
    "standard tag": ("name: !!str 5\n", 1, "Tags are not allowed"),
    "bare tag": ("name: ! x\n", 1, "Tags are not allowed"),
    "tab for indentation": ("links:\n\thome: x\n", 2, "Indent with spaces"),
    "NUL": ("name: Ada\nvibe: a\0b\n", 2, "U+0000"),
    "NUL by escape": ('name: "a\\0b"\n', 1, "U+0000"),
    "NUL in a key by escape": ('"a\\0b": x\n', 1, "U+0000"),
    "carriage return by escape": ('name: "a\\rb"\n', 1, "U+000D"),
    "terminal escape": ("name: \x1b[31mAda\n", 1, "U+001B"),
    "line separator": ("name: a\u2028b\n", 1, "U+2028"),
    "byte order mark inside": ("name: Ada\n\ufeffvibe: dry\n", 2, "U+FEFF"),
    "half a surrogate pair": ("name: \ud83d\n", 1, "U+D83D"),
    "half a surrogate pair by escape": ('name: "\\ud83d"\n', 1, "U+D83D"),
    "the halves in the wrong order": ('name: "\\udd0e\\ud83d"\n', 1, "U+DD0E"),
    "escape of no character": ('name: "\\UFFFFFFFF"\n', 1, "an invalid escape sequence"),
    "20 KiB": ("name: " + "x" * 20 * 1024 + "\n", 1, "longer than 16 KiB"),
    "20 KiB of emoji": ("name: " + "🦊" * 5 * 1024 + "\n", 1, "longer than 16 KiB"),
    "list": ("- name\n- Ada\n", 1, "not a list or a single value"),
    "scalar": ("just words\n", 1, "not a list or a single value"),
    "braces": ("{name: Ada, vibe: dry}\n", 1, "without braces"),
    "braces over lines": ("{\nname: Ada\n}\n", 1, "without braces"),
    "indented keys": ("  name: Ada\n  vibe: dry\n", 1, "at the start of the line"),
    "question mark key": ("? name\n: Ada\n", 1, "at the start of the line"),
    "list as a key": ("a: b\n[c, d]: e\n", 2, "A key must be text"),
    "mapping as a nested key": ("a:\n  {b: c}: d\n", 2, "A key must be text"),
    "second document": ("name: Ada\n--- more\n", 2, "Remove the line that starts with ---"),
    "document end": ("name: Ada\n...\n", 2, "Remove the line that starts with ---"),
    "directive": ("%YAML 1.1\n", 2, "This is not valid YAML"),
    "colon in a value": ("name: Ada\nvibe: dry: very\n", 2, "must be in quotes"),
    "line without a key": ("name: Ada\nvibe dry\nlast: x\n", 2, "key: value"),
    "open quote": ('name: "Ada\nvibe: dry\n', 1, "This is not valid YAML"),
    "open bracket": ("name: [Ada\n", 2, "This is not valid YAML"),
}


def problems_of(head: str) -> tuple[TextProblem, ...]:
    with pytest.raises(FrontMatterError) as caught:
        parse_front_matter(head)
    return caught.value.problems


def values_of(head: str) -> dict[str | None, object]:
    return {block.key: block.value for block in parse_front_matter(head) if block.key is not None}


@pytest.mark.slow
@pytest.mark.promise("R8", counts="YAML heads")
@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_head_is_refused_quickly_with_its_line_and_reason(name, record_property):
    head, line, reason = NASTY[name]
    first = problems_of(head)[0]
    seconds = measure_seconds(lambda: problems_of(head), 1)
    record_property("longest answer", seconds)
    assert seconds < 1
    assert reason in first.message
    assert first.line == line


@pytest.mark.slow
@pytest.mark.parametrize(
    "fill", ["[],", "{},", "a,", "? ", "- ", '"",', "a: ", "#\n", "\n", "- a\n", "a:\n- "]
)
def test_no_head_under_the_limit_takes_a_second(fill):
    head = ("k: [" + fill * 16_000)[: 16 * 1024]

    def refuse() -> None:
        with pytest.raises(FrontMatterError):
            parse_front_matter(head)

    assert measure_seconds(refuse, 1) < 1


def test_the_largest_ordinary_head_loads_within_a_second():
    head = "".join(f"k{number}: [a, b]\n" for number in range(1_000))[: 16 * 1024].rsplit("\n", 1)[0] + "\n"
    assert parse_front_matter(head)[-1].value == ["a", "b"]
    assert measure_seconds(lambda: parse_front_matter(head), 1) < 1


def test_twenty_levels_are_allowed_and_one_more_is_not():
    assert parse_front_matter("a: " + "[" * 19 + "]" * 19 + "\n")
    assert "20 levels deep" in problems_of("a: " + "[" * 20 + "]" * 20 + "\n")[0].message


def test_all_reasons_of_one_kind_are_reported_together():
    head = "a: 1\nb: &x 2\nc: !y 3\nd: *x\n"
    assert [problem.line for problem in problems_of(head)] == [2, 3, 4]


def test_the_problems_of_a_hostile_head_stay_few():
    assert len(problems_of("a: [" + "*x, " * 4_000 + "]\n")) == 20


def test_a_duplicate_key_names_its_field_and_counts_lines_from_where_the_head_begins():
    with pytest.raises(FrontMatterError) as caught:
        parse_front_matter("name: Ada\nname: Bob\n", first_line=2)
    assert caught.value.problems == (
        TextProblem("name", 3, 'The key "name" appears twice. Remove one of them.'),
    )
    assert str(caught.value) == 'line 3: The key "name" appears twice. Remove one of them.'


@pytest.mark.parametrize(
    "word", ["no", "1.10", "2024-01-01", "0x1F", "1_000", "12:30:45", "true", ".inf", "=", "<<"]
)
def test_a_scalar_stays_the_text_that_was_written(word):
    assert values_of(f"key: {word}\n{word}: value\n") == {"key": word, word: "value"}


def test_null_is_empty_text_unless_quoted():
    assert values_of("a: null\nb: ~\nc:\nd: 'null'\ne: [~, x]\n") == {
        "a": "", "b": "", "c": "", "d": "null", "e": ["", "x"],
    }  # fmt: skip


def test_nested_values_are_text_all_the_way_down():
    assert values_of("a:\n  b: [1, {c: no}]\n  d: |\n    two\n    lines\n") == {
        "a": {"b": ["1", {"c": "no"}], "d": "two\nlines\n"}
    }


@pytest.mark.parametrize("head", ["", "\n", "# only a comment\n", "{}\n"])
def test_a_head_without_keys_is_no_problem(head):
    assert values_of(head) == {}


def test_each_key_owns_its_lines_and_the_comments_right_above_it():
    head = (
        "# lone\n\n# about a\n# more\na: 1  # beside\n\n# lone too\n\n"
        "b:\n- x\n- y\n# about c\nc: |+\n  text\n\n# d\nd: {x: 1,\n  y: 2}\n# end\n"
    )
    assert [(block.key, block.source) for block in parse_front_matter(head)] == [
        (None, "# lone\n\n"),
        ("a", "# about a\n# more\na: 1  # beside\n"),
        (None, "\n# lone too\n\n"),
        ("b", "b:\n- x\n- y\n"),
        ("c", "# about c\nc: |+\n  text\n\n"),
        ("d", "# d\nd: {x: 1,\n  y: 2}\n"),
        (None, "# end\n"),
    ]


def test_a_block_knows_the_line_of_its_key():
    assert [(block.key, block.line) for block in parse_front_matter("# a\na: 1\n\nb: 2\n", first_line=2)] == [
        ("a", 3), (None, 4), ("b", 5),
    ]  # fmt: skip


YAMLISH = st.text(st.sampled_from("ab: \n-#?[]{},|>'\"&*!%@~\\0U\t"), max_size=60)
LINES = st.lists(
    st.sampled_from(
        ["a: 1", "b:", "c: |+", "d: >-", "  text", "  - x", "- y", "", "# c", "  # i", "e: [x,", "  y]",
         "  ? z", "f: 'q", "  q'", "g:", "  h: i", "  ", "j: {}"]
    ),
    max_size=12,
)  # fmt: skip


@settings(deadline=None)
@given(st.one_of(YAMLISH, st.text(), LINES.map("\n".join)))
def test_any_text_loads_whole_or_is_refused_with_reasons(head):
    try:
        blocks = parse_front_matter(head)
    except FrontMatterError as error:
        problems = error.problems
    else:
        assert "".join(block.source for block in blocks) in (head, "")
        for block in blocks:
            assert block.key is None or values_of(block.source) == {block.key: block.value}
        return
    assert problems
    assert all(problem.message and problem.line >= 1 for problem in problems)


def test_text_without_front_matter_is_all_body():
    assert split_front_matter("\nHello\n---\nthere\n") == ("", "\nHello\n---\nthere", 1)


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: Ada\n---\n\nHello\n",
        "\ufeff---\r\nname: Ada\r\n---\r\n\r\nHello\r\n",
        "---\rname: Ada\r---\r\rHello\r",
        "--- \nname: Ada\n---\t\n\nHello",
    ],
)
def test_byte_order_mark_line_ends_and_blanks_after_dashes_do_not_matter(text):
    assert split_front_matter(text) == ("name: Ada\n", "Hello", 5)


def test_front_matter_that_is_never_closed_is_refused():
    with pytest.raises(FrontMatterError) as caught:
        split_front_matter("---\nname: Ada\n\nHello\n")
    assert caught.value.problems[0].line == 1
    assert "has no closing --- line" in caught.value.problems[0].message


def test_indented_or_longer_dashes_close_nothing():
    assert split_front_matter("---\na: |\n  ---\n  ----\n----\n---\n")[0] == "a: |\n  ---\n  ----\n----\n"


@pytest.mark.parametrize(
    "body", ["---", "---\nname: Mallory\n---\n", "\ufeffx", "\n\nx\n\n", "\n", "", "----"]
)
@pytest.mark.parametrize("head", ["", "a: b\n"])
def test_awkward_bodies_survive_join_and_split(head, body):
    assert split_front_matter(join_front_matter(head, body))[:2] == (head, body)


@settings(deadline=None)
@given(st.sampled_from(["", "a: b\n", "\n"]), st.text(st.characters(exclude_characters="\r")))
def test_every_body_survives_join_and_split(head, body):
    assert split_front_matter(join_front_matter(head, body))[:2] == (head, body)


def test_the_persona_files_need_no_django():
    program = "import sys; sys.modules['django'] = None; import personas.persona_files.format"
    subprocess.run([sys.executable, "-c", program], check=True)
