"""The SKILL.md parser: same verdict as the reference validator, with the line of each problem."""

import unicodedata

import frontmatter
import pytest
import yaml
from skills_ref import read_properties

from skills.skill_format.parser import ParsedSkill, SkillProblem, list_skill_problems, parse_skill
from skills.skill_format.tolerance import STRICT_TOLERANCE, apply_tolerance, evaluate_for_harness
from tests.skills.skill_format.skill_corpus import (
    CASES,
    DIFFERENCES,
    HEAD,
    SAMPLES,
    SOUND,
    reference_accepts,
    title_of,
)


def strict(case):
    return apply_tolerance(parse_skill(case.source, folder_name=case.folder), STRICT_TOLERANCE)


def sound(text, folder="a-b"):
    reading = parse_skill(text, folder_name=folder)
    assert not apply_tolerance(reading, STRICT_TOLERANCE).reasons
    return reading.skill


# --- the reference ---------------------------------------------------------------------------------------


def test_the_corpus_is_large_enough():
    assert len(CASES) >= 100
    assert len({case.title for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=title_of)
def test_the_strict_verdict_is_the_references(case, tmp_path):
    assert strict(case).kept == reference_accepts(case, tmp_path) == (not case.flaw)


@pytest.mark.promise("R8", counts="files")
@pytest.mark.parametrize("case", [case for case in CASES if case.flaw], ids=title_of)
def test_the_problem_has_flaw_line_and_message(case):
    reason = strict(case).reasons[0]
    assert (reason.flaw, reason.line) == (case.flaw, case.line)
    assert reason.message.endswith(".")
    assert len(reason.message) < 200


@pytest.mark.parametrize(("case", "reason", "is_kept"), DIFFERENCES, ids=title_of)
def test_we_differ_from_the_reference_only_where_listed(case, reason, is_kept, tmp_path):
    assert strict(case).kept is is_kept
    assert reference_accepts(case, tmp_path) is not is_kept


@pytest.mark.parametrize("case", SOUND, ids=title_of)
def test_a_valid_skill_has_the_values_of_the_reference(case, tmp_path):
    assert reference_accepts(case, tmp_path)
    theirs, ours = read_properties(tmp_path / case.folder), sound(case.source, case.folder)
    assert ours.description == theirs.description
    assert ours.name == unicodedata.normalize("NFKC", theirs.name)
    if isinstance(theirs.license, str):
        assert ours.license == theirs.license


class TextHandler(frontmatter.default_handlers.YAMLHandler):
    """Reads all scalars as text; the default loader would turn `no` into False."""

    def load(self, fm, **kwargs):
        return yaml.load(fm, Loader=yaml.BaseLoader)  # noqa: S506 - it builds nothing but text


@pytest.mark.parametrize("case", SOUND, ids=title_of)
def test_python_frontmatter_finds_the_same_keys_and_body(case):
    values, body = frontmatter.parse(
        case.source.decode().replace("\r\n", "\n").replace("\r", "\n"), handler=TextHandler()
    )
    ours = sound(case.source, case.folder)
    assert ours.body.strip() == body.strip()
    assert ours.description == str(values["description"]).strip()


# --- reading ---------------------------------------------------------------------------------------------


def test_a_whole_skill_is_read_with_its_strings_as_strings():
    assert sound(SAMPLES["pdf-processing"], "pdf-processing") == ParsedSkill(
        name="pdf-processing",
        description="Extract text and tables from PDF files, fill forms and merge documents. "
        "Use when a PDF is mentioned.",
        license="Apache-2.0",
        compatibility="Requires poppler-utils and Python 3.11",
        allowed_tools="Bash(pdftotext:*) Read",
        metadata=(("author", "example-org"), ("version", "1.10"), ("released", "2024-01-01"), ("beta", "no")),
        body="# PDF processing\n\n1. Look at the file with `pdfinfo`.\n"
        "2. Extract with `pdftotext -layout`.\n\n---\n\nSee [the reference](references/forms.md) for forms.",
    )


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_nothing(mark, ends):
    plain = f"---\n{HEAD}license: |\n  a\n  b\n---\n\nOne.\n\nTwo.\n"
    assert sound((mark + plain.replace("\n", ends)).encode()) == sound(plain)


def test_text_and_bytes_read_alike():
    for case in SOUND:
        assert parse_skill(case.source) == parse_skill(case.source.decode())


def test_all_problems_are_listed_in_the_order_of_lines():
    text = "---\nversion: 1\nname: A_b\ncompatibility: [x]\nmetadata: y\n---\n"
    problems = [
        (problem.line, problem.field, problem.flaw) for problem in parse_skill(text, folder_name="c").problems
    ]
    assert problems == [
        (1, "description", "description-missing"),
        (2, "version", "unknown-field"),
        (3, "name", "name-shape"),
        (3, "name", "name-folder"),
        (4, "compatibility", "compatibility"),
        (4, "compatibility", "flow-style"),
        (5, "metadata", "metadata-shape"),
    ]


def test_broken_yaml_and_a_broken_body_are_reported_together():
    reading = parse_skill("---\nname: 'a\n---\n\nx\n\x00\n")
    assert reading.skill is None
    assert [(problem.line, problem.flaw) for problem in reading.problems] == [
        (2, "front-matter"),
        (6, "unreadable"),
    ]


def test_many_small_problems_do_not_hide_a_grave_one():
    flaws = "".join(f"  k{n}:\n  - x\n" for n in range(50)) + "".join(f"x{n}: y\n" for n in range(50))
    verdict = evaluate_for_harness(
        parse_skill(f"---\n{HEAD}metadata:\n{flaws}---\n", folder_name="other"), "opal"
    )
    assert [reason.flaw for reason in verdict.reasons] == ["name-folder"]
    assert len(verdict.warnings) == 40


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"ok\n\xff", "Byte 4 (0xFF) is not UTF-8."),
        (
            "---\n".encode("utf-16"),
            ("Byte 1 (0xFF) is not UTF-8. The file seems to be UTF-16. Save it as UTF-8."),
        ),
        (b"x" * 262_145, "The file is larger than 256 KiB."),
        (f"---\n{HEAD}---\n\x00".encode(), "The character U+0000 is not allowed."),
        (f"---\n{HEAD}---\n\ud800", "The character U+D800 is not allowed."),
        (f"---\n{HEAD}# {'x' * 16_384}\n---\n", "The front matter is longer than 16 KiB."),
    ],
)
def test_an_unreadable_file_is_refused_with_a_message(source, message):
    reading = parse_skill(source)
    assert reading.skill is None
    assert [problem.message for problem in reading.problems] == [message]


def test_the_largest_file_allowed_is_read_and_the_limit_can_be_lowered():
    text = f"---\n{HEAD}---\n\n"
    text += "x" * (262_144 - len(text))
    assert sound(text).body
    assert parse_skill(text, max_bytes=1_000).skill is None


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        ("allowed-tools:\n- Read\n- Grep\n", "allowed_tools", "Read Grep"),
        ("allowed-tools:\n- Read\n- Bash(git add *)\n", "allowed_tools", "Read, Bash(git add *)"),
        ("allowed-tools:\n  a: b\n", "allowed_tools", '{"a": "b"}'),
        ("license:\n- MIT\n", "license", '["MIT"]'),
        ("metadata: hello\n", "metadata", ()),
        ("metadata:\n  a:\n    b: [c]\n", "metadata", (("a", '{"b": ["c"]}'),)),
        ("disable-model-invocation: True\n", "disable_model_invocation", True),
        ("disable-model-invocation: false\n", "disable_model_invocation", False),
        ("disable-model-invocation: yes\n", "disable_model_invocation", False),
        ('metadata:\n  emoji: "\\ud83d\\udd0e"\n', "metadata", (("emoji", "\U0001f50e"),)),
        ('metadata: {"a": {"emoji": "\\uD83D\\uDD0E"}}\n', "metadata", (("a", '{"emoji": "\U0001f50e"}'),)),
        ("hint: '[x]'\nlicense: MIT\n# why\nmodel: big\n", "extra", "hint: '[x]'\n# why\nmodel: big\n"),
    ],
)  # fmt: skip
def test_values_of_another_shape_are_kept_as_well_as_they_can_be(more, field, value):
    assert getattr(parse_skill(f"---\n{HEAD}{more}---\n").skill, field) == value


def test_a_skill_without_a_name_takes_its_folders_or_is_none():
    text = "---\ndescription: d\n---\n"
    assert parse_skill(text, folder_name="a-b").skill == ParsedSkill("a-b", "d")
    assert parse_skill(text).skill is None


def test_forms_are_held_to_the_same_rules_in_ascii():
    assert list_skill_problems(name="a-b", description="d", metadata={"a": "b"}) == []
    problems = list_skill_problems(name="café", description=" ", metadata={"a": 1})
    assert problems == [
        SkillProblem(
            "name", "Use lowercase letters, digits and single hyphens, with no hyphen at either end."
        ),
        SkillProblem(
            "description", "A skill needs a description: it is all a model sees until it loads the skill."
        ),
        SkillProblem("metadata", "Keys and values of metadata must be text."),
    ]
