"""libyaml and PyYAML: front matter is read by libyaml where possible, with the same result as PyYAML."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.text import yaml_events
from core.text.front_matter import FrontMatterError, parse_front_matter, split_front_matter
from core.text.yaml_blocks import read_blocks
from core.text.yaml_events import LIBYAML, is_ambiguous_yaml, parse_with_libyaml
from tests.core.text.test_front_matter import LINES, NASTY, YAMLISH
from tests.example_counts import examples
from tests.processor_time import measure_seconds

SAMPLES = sorted((Path(__file__).parents[2] / "skills/skill_format/samples").glob("*/SKILL.md"))
HEADS = [split_front_matter(path.read_text(encoding="utf-8"))[0] for path in SAMPLES]
WHOLE = """\
# lone

# about a
a:
  b:
    - c: d
      e: f  # beside
    - g
  h: >-
    folded
    text

    more
# about i
i: |2-
    x
   y
j: "q\\n \\
  w \\u263a"
k: 'it''s

  ok'
g: what ? http://s.example/t#u - v?
l: [a, {b: c, d: [e]}, 'f', "g"]
m: {
  n: o,
  p: q
}
w:

# end
"""
# The two parsers differ on these, or only one of them accepts them: PyYAML must decide.
DIFFERENCES = {
    "a tab after a value": "a: 'b'\t\n",
    "a tab before a value": "a:\tb\n",
    "a comment that touches the sign of a block": "a: |# b\n  c\n",
    "the same behind an indicator": "a: >-# b\n  c\n",
    "a question mark in a list": "a: [b?]\n",
    "a question mark in braces": "a: {b?: c}\n",
}
needs_libyaml = pytest.mark.skipif(LIBYAML is None, reason="PyYAML was built without libyaml.")


def outcome(head):
    try:
        return parse_front_matter(head, 2)
    except FrontMatterError as error:
        return error.problems


def slow_outcome(head):
    """Parse as on a machine without libyaml."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_events, "LIBYAML", None)
        return outcome(head)


def quick_blocks(head):
    return read_blocks(head, 2, parse_with_libyaml(head))


def nasty_heads():
    """Yield the nasty heads; the deepest take PyYAML half a second each, so they are marked hard."""
    for name, (head, *_) in NASTY.items():
        yield pytest.param(head, marks=[pytest.mark.hard] if name.startswith("deep") else [], id=name)


@pytest.mark.promise("R8")
@pytest.mark.parametrize("head", [*HEADS, WHOLE, "", "# c\n", "{}\n", *nasty_heads()])
def test_both_readers_say_the_same(head):
    assert outcome(head) == slow_outcome(head)


PIECES = st.sampled_from(
    ["a: 1\n", "b:\n", "c: |+\n", "c: |2\n", "d: >-\n", "  text\n", "  - x\n", "- y\n", "\n", "# c\n",
     "  # i\n", "e: [x,", "  y]\n", "  ? z\n", "f: 'q", "  q'\n", 'g: "a', ' b"\n', "  h: i\n", "  ",
     "{a: b}", "[a, b]", "a:b", "http://x/z?a=b#c", " #", "é", "🦊", "\\x41", "\\", "\\0", "\\/", "\\\n",
     "''", '"', "- ", "? ", ": ", ", ", "\u3000", "\xa0", "- - a\n", "a: [\n", "]\n", "}\n", "\t",
     "x" * 1_100, "---\n", "...\n", "%", "&a ", "*a", "!x ", "|#", "null", "~"]
)  # fmt: skip


@st.composite
def damaged(draw):
    head = draw(st.sampled_from([*HEADS, WHOLE]))
    for _ in range(draw(st.integers(1, 3))):
        at, cut = draw(st.integers(0, len(head))), draw(st.integers(0, 6))
        head = head[:at] + draw(PIECES | st.text(max_size=2)) + head[at + cut :]
    return head


@pytest.mark.slow
@settings(max_examples=examples(150, hard=400), deadline=None)
@given(
    st.one_of(damaged(), st.lists(PIECES, max_size=8).map("".join), LINES.map("\n".join), YAMLISH, st.text())
)
@example('a: "\\ud83d\\ude00"\n')
@example("a: [b:\n  ]\n# c\n")
@example("*a : b\n")
def test_both_readers_say_the_same_of_any_head(head):
    assert outcome(head) == slow_outcome(head)


@needs_libyaml
@pytest.mark.parametrize("name", DIFFERENCES)
def test_where_the_readers_differ_pyyaml_decides(name):
    assert is_ambiguous_yaml(DIFFERENCES[name])
    assert outcome(DIFFERENCES[name]) == slow_outcome(DIFFERENCES[name])


@pytest.mark.promise("R8")
@needs_libyaml
@pytest.mark.planted
@pytest.mark.parametrize("name", DIFFERENCES)
def test_without_the_look_for_differences_libyaml_would_be_believed(name, monkeypatch):
    monkeypatch.setattr(yaml_events, "is_ambiguous_yaml", lambda text: False)
    assert outcome(DIFFERENCES[name]) != slow_outcome(DIFFERENCES[name])


@needs_libyaml
@pytest.mark.parametrize("head", [*HEADS, WHOLE])
def test_ordinary_heads_are_read_the_quick_way(head):
    assert quick_blocks(head) == slow_outcome(head)


@pytest.mark.hard
@needs_libyaml
def test_the_quick_way_is_several_times_quicker():
    def seconds(read):
        started_at = time.process_time()
        for _ in range(20):
            read(WHOLE)
        return time.process_time() - started_at

    # Other work on the machine slows down one or the other.
    assert max(seconds(slow_outcome) / seconds(outcome) for _ in range(5)) > 3


@needs_libyaml
@pytest.mark.parametrize("fill", ["{", "[", "{[", "- ", "? ", "{a: ", "[]: ,", "\na:\n "])
def test_a_hostile_head_is_soon_given_up(fill):
    head = ("a: " + fill * 16_000)[: 16 * 1024]

    def refuse() -> None:
        with pytest.raises((ValueError, yaml.YAMLError)):
            quick_blocks(head)

    assert measure_seconds(refuse, 0.3) < 0.3


def test_a_block_knows_where_brackets_and_braces_open():
    head = "a: b\nc:\n- [d,\n  {e: f}]\n- g\nh: {}\n"
    assert [(block.key, block.flow_lines) for block in parse_front_matter(head)] == [
        ("a", ()),
        ("c", (3, 4)),
        ("h", (6,)),
    ]
    assert [(block.key, block.source, block.flow_lines) for block in parse_front_matter("# i\n{}\n")] == [
        (None, "", (2,))
    ]


def test_without_libyaml_files_are_read_all_the_same():
    program = (
        "import sys; sys.modules['yaml.cyaml'] = None\n"
        "from core.text.front_matter import parse_front_matter\n"
        "from core.text.yaml_events import LIBYAML\n"
        "assert LIBYAML is None and parse_front_matter('a: [b]\\n')[0].value == ['b']\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
