"""Links of a SKILL.md that lead out of the skill's folder."""

import pytest

from skills.files.evaluate import build_skill_reading, evaluate_file
from skills.skill_format.outside_references import MAX_REFERENCES, list_outside_references
from skills.skill_format.rules import SkillFlaw
from skills.skill_format.tolerance import HARNESS_TOLERANCES, evaluate_for_harness

HEAD = "---\nname: tea\ndescription: Makes tea.\n---\n\n"


def targets(text: str) -> list[str]:
    return [problem.message.split()[3].rstrip(",") for problem in list_outside_references(text)]


@pytest.mark.parametrize(
    "target",
    ["../cups.md", "../../shared/a.md", "a/../../b.md", "/etc/passwd", "~/notes.md", "..", "%2e%2e/x"],
)
def test_a_link_out_of_the_folder_is_reported(target):
    for text in (f"See [it]({target}).", f"![]({target} 'title')", f"[it]: {target}", f"[it](<{target}>)"):
        assert targets(text) == [target], text


@pytest.mark.parametrize(
    "text",
    [
        "[it](cups.md) [it](./a/b.md) [it](a/../b.md) [it](...) [it](..a/b)",
        "[it](https://example.com/../x) [it](//example.com/..) [it](mailto:a@b) [it](#../x)",
        "Plain ../cups.md and `../cups.md`.",
        "```\n[it](../cups.md)\n```",
        "~~~md\n[it](../cups.md)\n```\n[it](../cups.md)\n~~~",
        "",
    ],
)
def test_other_text_is_not_reported(text):
    assert targets(text) == []


def test_a_problem_has_its_line_and_is_printable():
    [problem] = list_outside_references(HEAD + "Boil.\n\n[it](../a\u202eb.md)\n")
    assert (problem.line, problem.flaw) == (8, SkillFlaw.OUTSIDE_REFERENCE)
    assert problem.message.isprintable()
    assert r"../a\u202eb.md" in problem.message


def test_the_number_of_problems_is_limited():
    assert len(list_outside_references("[it](../a) " * 1_000)) == MAX_REFERENCES


def test_no_harness_drops_a_skill_for_it():
    evaluation = evaluate_file("skill", "skills/tea/SKILL.md", (HEAD + "[it](../a)\n").encode(), ["plain"])
    assert evaluation.verdict == "good"
    reading = build_skill_reading(evaluation.head, evaluation.problems)
    for harness in HARNESS_TOLERANCES:
        verdict = evaluate_for_harness(reading, harness)
        assert (verdict.kept, len(verdict.warnings)) == (True, 1)
