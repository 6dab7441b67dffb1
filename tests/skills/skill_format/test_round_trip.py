"""Round trips of skills, and hostile or damaged files."""

from functools import partial

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from skills.skill_format.parser import (
    InvalidSkill,
    ParsedSkill,
    parse_skill,
    read_workspace_file,
    render_skill,
)
from skills.skill_format.tolerance import HARNESS_TOLERANCES, evaluate_for_harness
from tests.example_counts import examples
from tests.processor_time import measure_seconds
from tests.skills.skill_format.skill_corpus import HEAD, SAMPLES, SOUND, Case, reference_accepts

pytestmark = pytest.mark.slow

AWKWARD = [
    "no", "null", "~", "1.10", "2024-01-01", "a: b", "a #b", "'a'", '"a"', "\\n", "a\nb", " a", "a\n", "\na",
    "a\n---\nb", "- a", "? a", "[a", "{a", "&a", "*a", "!a", "|", ">", "%a", "@a", "---", "...", "\ta\n b",
    "\u2028a", "\ufeff", "\u00a0", "🦊", "مرحبا", "a\n\n  b\n c", "  a\nb", "x" * 300, "a\n\n\n",
]  # fmt: skip
WRITABLE = st.characters(
    exclude_categories=["Cc", "Cs"], include_characters="\t\n", exclude_characters="\ufffe\uffff"
)
VALUES = st.one_of(st.sampled_from(AWKWARD), st.text(WRITABLE, max_size=30))
PAIRS = st.dictionaries(VALUES, VALUES, max_size=4).map(lambda pairs: tuple(pairs.items()))
EXTRAS = ["", "model: big\n", "# why\nhooks: {a: [b]}\n", "z: |+\n  text\n\n\n", "globs:\n- '*'\n"]
SKILLS = st.builds(
    ParsedSkill,
    name=st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,3}", fullmatch=True),
    description=VALUES,
    license=VALUES,
    compatibility=VALUES,
    allowed_tools=VALUES,
    metadata=PAIRS,
    disable_model_invocation=st.booleans(),
    body=st.one_of(st.sampled_from(["", "\n", "---", "\n\na\n\n", "\ufeffa", "a\r\nb"]), st.text(WRITABLE)),
    extra=st.sampled_from(EXTRAS),
)


@given(SKILLS)
@example(ParsedSkill(name="a", metadata=(("k" * 200, "v"), ("", ""), ("a\nb", "\n"))))
@settings(max_examples=examples(40, hard=300), deadline=None)
def test_a_skill_written_and_read_again_is_the_same(skill):
    assert parse_skill(render_skill(skill)).skill == skill


@given(st.builds(ParsedSkill, name=st.just("a-b"), description=VALUES, license=VALUES, metadata=PAIRS))
@settings(max_examples=examples(25, hard=50), deadline=None)
def test_what_we_write_the_reference_accepts(tmp_path_factory, skill):
    text = render_skill(skill)
    # The reference parser ends the front matter at any three hyphens.
    assume(skill.description and text.count("---") == 2)
    assert reference_accepts(Case("", text.encode()), tmp_path_factory.mktemp("written"))


def test_a_written_skill_reads_well():
    skill = ParsedSkill(
        name="a-b",
        description="Does: this.\nAnd that.",
        allowed_tools="Read",
        metadata=(("version", "1.10"),),
        body="# Do\n",
        extra="x: y\n",
    )
    assert render_skill(skill) == (
        "---\nname: a-b\ndescription: |-\n  Does: this.\n  And that.\nmetadata:\n  version: '1.10'\n"
        "allowed-tools: Read\nx: y\n---\n\n# Do\n\n"
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_survive_being_written(name):
    skill = parse_skill(SAMPLES[name], folder_name=name).skill
    assert skill
    assert parse_skill(render_skill(skill)).skill == skill


@pytest.mark.parametrize(
    ("skill", "message"),
    [
        (ParsedSkill("a", body="x" * 300_000), "256 KiB"),
        (ParsedSkill("a", description="x" * 17_000), "16 KiB"),
        (ParsedSkill("a", license="a\x00b"), r"U\+0000"),
        (ParsedSkill("a", body="\x1b"), r"U\+001B"),
        (ParsedSkill("a", extra="name: b\n"), "twice"),
        (ParsedSkill("a", extra="license: b\n"), "cannot be stored without changes"),
        (ParsedSkill("a", extra="---\nb"), "cannot be stored without changes"),
        (ParsedSkill(""), "needs a name"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(skill, message):
    with pytest.raises(InvalidSkill, match=message):
        render_skill(skill)


# --- hostile input ---------------------------------------------------------------------------------------

BOMB = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(f'*{a}' * 1 for _ in range(8))}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HEADS = {
    "alias bomb": BOMB,
    "brackets": "a: " + "[" * 16_000,
    "braces": "a: " + "{" * 16_000,
    "levels": "".join(f"{' ' * n}a:\n" for n in range(170)),
    "dashes": "- " * 8_000,
    "question marks": "? " * 8_000,
    "keys": "".join(f"{n:x}:\n" for n in range(3_000)),
    "same keys": "a:\n" * 5_000,
    "lists": "a: [" + "[]," * 5_000 + "]",
    "colons": ":" * 16_000,
    "quotes": "a: '" + "''" * 8_000,
    "escapes": 'a: "' + "\\x41" * 4_000 + '"',
    "comments": "#\n" * 8_000,
    "blank lines": "\n" * 16_000,
    "spaces": "a:" + " " * 16_000,
    "hyphens": "name: " + "-" * 16_000,
    "tags": "!a " * 5_000,
    "block": "a: |\n" + "  x\n" * 4_000,
    "folded": "a: >\n" + "  x\n\n" * 3_000,
    "metadata": "metadata:\n" + "".join(f" {n:x}: []\n" for n in range(1_500)),
}
FILES: dict[str, str | bytes] = {
    "fences": "---\n" * 65_000,
    "hyphens": "-" * 262_144,
    "carriage returns": "---\r" * 65_000,
    "controls": f"---\n{HEAD}---\n" + "\x01" * 260_000,
    "broken bytes": b"---\n" + b"\xff" * 260_000,
    "NUL": b"\x00" * 262_144,
    "50 MB": bytes(50_000_000),
    "comments": "<!-- -->" * 32_000,
    "comments never closed": "<!--" * 65_000,
    "space before a comment": " " * 262_000 + "<!--",
    "marks": "\ufeff" * 80_000,
    **{f"a head of {title}": f"---\n{HEAD}{head}\n---\n\nx\n" for title, head in HEADS.items()},
}


@pytest.mark.promise("R8", counts="files")
@pytest.mark.parametrize("title", FILES)
def test_hostile_files_are_answered_within_a_second(title, record_property):
    for read in (parse_skill, read_workspace_file):
        seconds = measure_seconds(partial(read, FILES[title]), 1)
        record_property("longest answer", seconds)
        assert seconds < 1


GOOD = [*SAMPLES.values(), *(case.source for case in SOUND)]
SNIPPETS = [
    b"", b"\n", b"\r", b"---\n", b"\n---\n", b": ", b"- ", b"? ", b"[", b"{}", b"'", b'"', b"|", b"&a ",
    b"*a", b"!x ", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"#", b"\t", b"%", b"name: x\n",
    b"metadata:\n", b"<<: ", b"\\U0011ffff", b"...\n", b"@", b"x" * 2_000,
]  # fmt: skip


CHANGED = examples(70, hard=200)


@pytest.mark.promise("R8")
def test_a_good_file_changed_at_random_gives_a_skill_or_reasons(record_property):
    tried = []

    @given(st.data())
    @settings(max_examples=CHANGED, deadline=None)
    def check(data):
        source = data.draw(st.sampled_from(GOOD))
        for _ in range(data.draw(st.integers(1, 4))):
            start, end = sorted(data.draw(st.integers(0, len(source))) for _ in range(2))
            source = (
                source[:start]
                + data.draw(st.sampled_from(SNIPPETS) | st.binary(max_size=4))
                + source[min(end, start + 8) :]
            )
        reading = parse_skill(source, folder_name="a-b")
        assert measure_seconds(lambda: parse_skill(source, folder_name="a-b"), 1) < 1
        assert reading.skill or reading.problems
        assert all(
            1 <= problem.line <= source.count(b"\n") + source.count(b"\r") + 2 for problem in reading.problems
        )
        if reading.skill:
            assert parse_skill(render_skill(reading.skill)).skill == reading.skill
        for harness in HARNESS_TOLERANCES:
            assert evaluate_for_harness(reading, harness).kept or reading.problems
        tried.append(len(source))

    check()
    record_property("mutations", len(tried))
