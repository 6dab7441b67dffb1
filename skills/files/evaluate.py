"""What to make of a file's bytes before any prompt may hold them: pure, one verdict per content."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from core.text.front_matter import FrontMatterError
from personas.persona_files.format import parse_identity, parse_user
from skills.scanning import has_blocking_finding, scan_text
from skills.skill_format.decode import decode_text, read_workspace_file
from skills.skill_format.parser import ParsedSkill, SkillParseResult, SkillProblem, parse_skill
from skills.skill_format.tolerance import evaluate_for_harness

PERSONA_PARSERS = {"IDENTITY.md": parse_identity, "USER.md": parse_user}


@dataclass(frozen=True)
class FileEvaluation:
    """A verdict with its reasons, as plain data."""

    verdict: Literal["good", "invalid", "blocked"]
    findings: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    head: dict[str, Any]


def evaluate_file(kind: str, path: str, content: bytes, harnesses: Sequence[str]) -> FileEvaluation:
    """Read, check and scan; a file that cannot be read is invalid whatever else it holds."""
    text, unreadable = decode_text(content)
    findings = scan_text(text, kind="skill" if kind == "skill" else "context")
    problems, head, is_sound = (
        parse_file(kind, path, text, harnesses) if not unreadable else (unreadable, {}, False)
    )
    verdict: Literal["good", "invalid", "blocked"] = "good"
    if not is_sound:
        verdict = "invalid"
    elif has_blocking_finding(findings):
        verdict = "blocked"
    return FileEvaluation(verdict, [asdict(one) for one in findings], [asdict(one) for one in problems], head)


def parse_file(
    kind: str, path: str, text: str, harnesses: Sequence[str]
) -> tuple[tuple[SkillProblem, ...], dict[str, Any], bool]:
    """All problems, what a skill's head says, and whether anyone may use the file."""
    if kind == "skill":
        return parse_skill_file(path, text, harnesses)
    plain = read_workspace_file(text)
    problems = plain.problems
    if not problems and kind == "persona":
        problems = find_persona_problems(path.rpartition("/")[2], plain.text)
    return problems, {}, not problems


def parse_skill_file(
    path: str, text: str, harnesses: Sequence[str]
) -> tuple[tuple[SkillProblem, ...], dict[str, Any], bool]:
    """Sound as long as one harness of the source would keep it; each agent's own judges again."""
    folder = path.split("/")[-2] if "/" in path else ""
    reading = parse_skill(text, folder_name=folder)
    kept = any(evaluate_for_harness(reading, name).kept for name in harnesses)
    return reading.problems, skill_head_json(reading.skill) if reading.skill else {}, kept


def find_persona_problems(name: str, text: str) -> tuple[SkillProblem, ...]:
    parse = PERSONA_PARSERS.get(name)
    try:
        if parse:
            parse(text)
    except FrontMatterError as error:
        return tuple(SkillProblem(one.field, one.message, one.line) for one in error.problems)
    return ()


def skill_head_json(skill: ParsedSkill) -> dict[str, Any]:
    """All but the body, which lies in the content."""
    head = {each.name: getattr(skill, each.name) for each in fields(skill) if each.name != "body"}
    return head | {"metadata": [list(pair) for pair in skill.metadata]}


def build_skill_reading(head: dict[str, Any], problems: Sequence[dict[str, Any]]) -> SkillParseResult:
    """The stored head as it was read, for a harness to judge; without a body."""
    skill = None
    if head:
        pairs = tuple((key, value) for key, value in head["metadata"])
        skill = ParsedSkill(**{**head, "metadata": pairs})
    return SkillParseResult(skill, tuple(SkillProblem(**one) for one in problems))
