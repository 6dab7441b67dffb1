"""The tolerance of each harness for the problems of a skill, and comments at the top of workspace files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.assembly.file_sections import remove_leading_comments
from prompts.assembly.inputs import ContextFileInput
from skills.skill_format.parser import SkillFlaw, parse_skill, read_workspace_file, strip_leading_comments
from skills.skill_format.tolerance import (
    HARNESS_TOLERANCES,
    evaluate_for_harness,
    evaluate_for_harnesses,
    get_judging_harnesses,
)
from tests.skills.skill_format.skill_corpus import HEAD, SAMPLES

KEPT, WARNED, DROPPED = "kept", "warned", "dropped"
ROWS = {
    #                        opal     pi       moltis   openclaw claude-code plain
    "":                     (KEPT,    KEPT,    KEPT,    KEPT,    KEPT,    KEPT),
    "Name: x":              (WARNED,  KEPT,    KEPT,    KEPT,    KEPT,    DROPPED),
    "metadata: {a: b}":     (WARNED,  KEPT,    KEPT,    KEPT,    KEPT,    DROPPED),
    "metadata: x":          (WARNED,  WARNED,  WARNED,  WARNED,  WARNED,  WARNED),
    "metadata:\n  a:\n  - b": (WARNED, WARNED, KEPT,    KEPT,    WARNED,  WARNED),
    "allowed-tools:\n- a":  (WARNED,  WARNED,  KEPT,    WARNED,  KEPT,    WARNED),
    "license:\n- a":        (WARNED,  WARNED,  KEPT,    WARNED,  WARNED,  WARNED),
    "compatibility:\n- a":  (DROPPED, WARNED,  KEPT,    WARNED,  WARNED,  DROPPED),
    "disable-model-invocation: yes": (DROPPED, WARNED, WARNED, WARNED, WARNED, DROPPED),
    "license: 'open":       (DROPPED, DROPPED, DROPPED, DROPPED, DROPPED, DROPPED),
}  # fmt: skip
NAME_ROWS = {
    "name: A-b\ndescription: d":   (DROPPED, DROPPED, DROPPED, DROPPED, DROPPED, DROPPED),
    "name: a b\ndescription: d":   (DROPPED, DROPPED, DROPPED, DROPPED, DROPPED, DROPPED),
    f"name: {'a' * 65}\ndescription: d": (DROPPED, DROPPED, DROPPED, DROPPED, DROPPED, DROPPED),
    "name: b-a\ndescription: d":   (DROPPED, WARNED,  KEPT,    WARNED,  WARNED,  DROPPED),
    "description: d":              (DROPPED, WARNED,  KEPT,    DROPPED, KEPT,    DROPPED),
    "name: a-b":                   (DROPPED, DROPPED, KEPT,    DROPPED, WARNED,  DROPPED),
    f"name: a-b\ndescription: {'d' * 1025}": (DROPPED, WARNED, KEPT, WARNED, WARNED, DROPPED),
}  # fmt: skip
HARNESSES = ("opal", "pi", "moltis", "openclaw", "claude-code", "plain")


def outcome(text, harness):
    verdict = evaluate_for_harness(parse_skill(text, folder_name="a-b"), harness)
    assert verdict.kept == (not verdict.reasons)
    return (WARNED if verdict.warnings else KEPT) if verdict.kept else DROPPED


@pytest.mark.parametrize("column", range(6), ids=HARNESSES)
def test_each_harness_is_as_tolerant_as_its_row(column):
    texts = {f"{HEAD}{more}\n": row for more, row in ROWS.items()} | {
        f"{k}\n": v for k, v in NAME_ROWS.items()
    }
    for head, row in texts.items():
        assert (head, outcome(f"---\n{head}---\n", HARNESSES[column])) == (head, row[column])


def test_a_dropped_skill_always_has_a_reason_and_a_warning_is_none():
    nameless = parse_skill("---\ndescription: d\n---\n")
    assert [reason.flaw for reason in evaluate_for_harness(nameless, "moltis").reasons] == ["name-missing"]
    damaged = evaluate_for_harness(parse_skill(f"---\n{HEAD}metadata: x\n---\n\x00"), "plain")
    assert [reason.flaw for reason in damaged.reasons] == ["unreadable"]
    assert [warning.flaw for warning in damaged.warnings] == ["metadata-shape"]


@pytest.mark.parametrize("folder", ["My Skill", "a" * 65, "a_b"])
def test_a_folder_name_that_is_no_skill_name_does_not_replace_a_missing_name(folder):
    reading = parse_skill("---\ndescription: d\n---\n", folder_name=folder)
    for harness in HARNESSES:
        verdict = evaluate_for_harness(reading, harness)
        assert not verdict.kept
        assert "name-shape" in [reason.flaw for reason in verdict.reasons]


def test_the_rules_of_the_layout_apply_beside_those_of_the_reader():
    assert get_judging_harnesses("pi", "opal") == ("pi", "opal")
    assert get_judging_harnesses("opal", "opal") == ("opal",)
    assert get_judging_harnesses("claude-code", "dramatis") == ("claude-code",)
    assert get_judging_harnesses("", "moltis") == ("moltis",)
    assert get_judging_harnesses("", "nova") == ("plain",)
    reading = parse_skill("---\nname: a-b\ndescription: d\n---\n", folder_name="other")
    assert evaluate_for_harnesses(reading, ["pi"]).kept
    verdict = evaluate_for_harnesses(reading, ["pi", "opal"])
    assert not verdict.kept
    assert [reason.flaw for reason in verdict.reasons] == ["name-folder"]


def test_only_opal_drops_a_name_beyond_ascii():
    reading = parse_skill("---\nname: café\ndescription: d\n---\n", folder_name="café")
    assert [name for name in HARNESSES if not evaluate_for_harness(reading, name).kept] == ["opal"]


def test_the_rows_name_all_harnesses_and_never_warn_of_what_they_ignore():
    assert set(HARNESS_TOLERANCES) == set(HARNESSES)
    for row in HARNESS_TOLERANCES.values():
        assert not row.warned & row.ignored
        assert not {SkillFlaw.UNREADABLE, SkillFlaw.FRONT_MATTER} & (row.warned | row.ignored)


def test_the_samples_find_their_harness():
    kept = {
        name: {h for h in HARNESSES if evaluate_for_harness(parse_skill(text, folder_name=name), h).kept}
        for name, text in SAMPLES.items()
    }
    assert kept == {
        "pdf-processing": set(HARNESSES),
        "weather": set(HARNESSES) - {"plain"},
        "review-changes": {"pi", "moltis", "claude-code"},
    }


# --- workspace files -------------------------------------------------------------------------------------

TOPS = {
    "text": "text",
    "<!-- a -->text": "text",
    "\n <!-- a\nb --> \n\n<!--c-->\n text <!-- d -->\n": "text <!-- d -->\n",
    "<!-- a <!-- b --> c -->": "c -->",
    "<!-- never closed": "<!-- never closed",
    "<!-- a --> <!-- never closed": "<!-- never closed",
    "<!-->text": "<!-->text",
    "text\n<!-- a -->": "text\n<!-- a -->",
    "  text": "  text",
    "<!-- a -->": "",
    "": "",
}


@pytest.mark.parametrize(("text", "rest"), TOPS.items())
def test_comments_at_the_top_go_and_all_others_stay(text, rest):
    assert strip_leading_comments(text) == rest


@given(st.text(st.sampled_from("<!-> \na"), max_size=60))
def test_the_assembly_strips_comments_alike(text):
    assert strip_leading_comments(text) == remove_leading_comments(ContextFileInput("AGENTS.md", text)).text


def test_a_workspace_file_is_read_like_any_other_text():
    read = read_workspace_file("\ufeff<!-- for editors -->\r\n\r\n# Tools\r\n".encode())
    assert (read.text, read.problems) == ("# Tools\n", ())
    for source, line in [(b"a\n\xff", 2), (b"x" * 262_145, 1), (b"a\nb\n\x00", 3)]:
        read = read_workspace_file(source)
        assert read.text == ""
        assert [(problem.line, problem.flaw) for problem in read.problems] == [(line, "unreadable")]
