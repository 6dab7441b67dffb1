"""Decode, parse and scan the bytes of a file and return a verdict. Pure functions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from core.text.front_matter import FrontMatterError
from personas.persona_files.format import parse_identity, parse_user
from skills.scanning import has_blocking_finding, scan_text
from skills.skill_format.decode import decode_text, read_workspace_file
from skills.skill_format.outside_references import list_outside_references
from skills.skill_format.parser import ParsedSkill, SkillParseResult, SkillProblem, parse_skill
from skills.skill_format.tolerance import evaluate_for_harness

PERSONA_PARSERS = {"IDENTITY.md": parse_identity, "USER.md": parse_user}


@dataclass(frozen=True)
class FileEvaluation:
    """The verdict on the content of a file, with scanner findings and parsing problems as JSON data.

    `head` is the front matter of a skill, and empty for other files.
    """

    verdict: Literal["good", "invalid", "blocked"]
    findings: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    head: dict[str, Any]


def evaluate_file(kind: str, path: str, content: bytes, harnesses: Sequence[str]) -> FileEvaluation:
    """Decode, parse and scan a file.

    A file that cannot be decoded or parsed gets the verdict "invalid", even if the scanner would block it.
    """
    text, decoding_problems = decode_text(content)
    findings = scan_text(text, kind="skill" if kind == "skill" else "context")
    problems, head, is_usable = (
        parse_file(kind, path, text, harnesses) if not decoding_problems else (decoding_problems, {}, False)
    )
    verdict: Literal["good", "invalid", "blocked"] = "good"
    if not is_usable:
        verdict = "invalid"
    elif has_blocking_finding(findings):
        verdict = "blocked"
    return FileEvaluation(verdict, list(map(asdict, findings)), list(map(asdict, problems)), head)


def parse_file(
    kind: str, path: str, text: str, harnesses: Sequence[str]
) -> tuple[tuple[SkillProblem, ...], dict[str, Any], bool]:
    """Return the problems, the front matter of a skill, and whether the file is usable."""
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
    """Parse a SKILL.md. It is usable if at least one harness of the source would keep it.

    Whether an agent can use the skill is decided later with the harness of that agent.
    """
    folder = path.split("/")[-2] if "/" in path else ""
    reading = parse_skill(text, folder_name=folder)
    is_kept = any(evaluate_for_harness(reading, name).kept for name in harnesses)
    problems = (*reading.problems, *list_outside_references(text))
    return problems, skill_head_json(reading.skill) if reading.skill else {}, is_kept


def find_persona_problems(name: str, text: str) -> tuple[SkillProblem, ...]:
    parse = PERSONA_PARSERS.get(name)
    try:
        if parse:
            parse(text)
    except FrontMatterError as error:
        return tuple(SkillProblem(entry.field, entry.message, entry.line) for entry in error.problems)
    return ()


def skill_head_json(skill: ParsedSkill) -> dict[str, Any]:
    """Return all fields of a skill as JSON data, except the body, which is part of the stored content."""
    head = {field.name: getattr(skill, field.name) for field in fields(skill) if field.name != "body"}
    return head | {"metadata": [list(pair) for pair in skill.metadata]}


def build_skill_reading(head: dict[str, Any], problems: Sequence[dict[str, Any]]) -> SkillParseResult:
    """Rebuild the parse result, without the body, from the stored front matter and problems."""
    skill = None
    if head:
        pairs = tuple((key, value) for key, value in head["metadata"])
        skill = ParsedSkill(**{**head, "metadata": pairs})
    return SkillParseResult(skill, tuple(SkillProblem(**problem) for problem in problems))
