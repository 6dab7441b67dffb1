"""What to make of a file's bytes before any prompt may hold them: pure, one verdict per content."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from core.text.front_matter import FrontMatterError
from personas.persona_files.format import parse_identity, parse_user
from skills.scanning import is_blocked, scan
from skills.skill_format.decode import decode, read_workspace_file
from skills.skill_format.parser import ParsedSkill, Problem, Reading, parse_skill
from skills.skill_format.tolerance import judge

PERSONA_PARSERS = {"IDENTITY.md": parse_identity, "USER.md": parse_user}


@dataclass(frozen=True)
class Judged:
    """A verdict with its reasons, as plain data."""

    verdict: Literal["good", "invalid", "blocked"]
    findings: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    head: dict[str, Any]


def judged(kind: str, path: str, content: bytes, harnesses: Sequence[str]) -> Judged:
    """Read, check and scan; a file that cannot be read is invalid whatever else it holds."""
    text, unreadable = decode(content)
    findings = scan(text, kind="skill" if kind == "skill" else "context")
    problems, head, is_sound = (
        read(kind, path, text, harnesses) if not unreadable else (unreadable, {}, False)
    )
    verdict: Literal["good", "invalid", "blocked"] = "good"
    if not is_sound:
        verdict = "invalid"
    elif is_blocked(findings):
        verdict = "blocked"
    return Judged(verdict, [asdict(one) for one in findings], [asdict(one) for one in problems], head)


def read(
    kind: str, path: str, text: str, harnesses: Sequence[str]
) -> tuple[tuple[Problem, ...], dict[str, Any], bool]:
    """All problems, what a skill's head says, and whether anyone may use the file."""
    if kind == "skill":
        return read_skill(path, text, harnesses)
    plain = read_workspace_file(text)
    problems = plain.problems
    if not problems and kind == "persona":
        problems = persona_problems(path.rpartition("/")[2], plain.text)
    return problems, {}, not problems


def read_skill(
    path: str, text: str, harnesses: Sequence[str]
) -> tuple[tuple[Problem, ...], dict[str, Any], bool]:
    """Sound as long as one harness of the source would keep it; each agent's own judges again."""
    folder = path.split("/")[-2] if "/" in path else ""
    reading = parse_skill(text, folder_name=folder)
    kept = any(judge(reading, name).kept for name in harnesses)
    return reading.problems, head_of(reading.skill) if reading.skill else {}, kept


def persona_problems(name: str, text: str) -> tuple[Problem, ...]:
    parse = PERSONA_PARSERS.get(name)
    try:
        if parse:
            parse(text)
    except FrontMatterError as error:
        return tuple(Problem(one.field, one.message, one.line) for one in error.problems)
    return ()


def head_of(skill: ParsedSkill) -> dict[str, Any]:
    """All but the body, which lies in the content."""
    head = {each.name: getattr(skill, each.name) for each in fields(skill) if each.name != "body"}
    return head | {"metadata": [list(pair) for pair in skill.metadata]}


def reading_of(head: dict[str, Any], problems: Sequence[dict[str, Any]]) -> Reading:
    """The stored head as it was read, for a harness to judge; without a body."""
    skill = None
    if head:
        pairs = tuple((key, value) for key, value in head["metadata"])
        skill = ParsedSkill(**{**head, "metadata": pairs})
    return Reading(skill, tuple(Problem(**one) for one in problems))
