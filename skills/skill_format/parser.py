"""SKILL.md: text to a frozen skill and back, or the reasons why not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import yaml

from core.text.front_matter import MAX_PROBLEMS, Block, FrontMatterError, Value, join, load, newlines, split
from skills.skill_format.decode import (
    MAX_BYTES,
    WorkspaceText,
    decode,
    read_workspace_file,
    strip_leading_comments,
    unreadable_characters,
)
from skills.skill_format.rules import (
    CHECKS,
    SWITCHES,
    Flaw,
    Problem,
    head_flaws,
    is_list_of_text,
    settled_name,
    skill_problems,
)

# python-frontmatter is a cross-check in the tests only: it follows aliases, turns `no` into False, keeps the
# last of two equal keys and forgets line numbers.
__all__ = [
    "Flaw",
    "ParsedSkill",
    "Problem",
    "Reading",
    "UnfitSkill",
    "WorkspaceText",
    "parse_skill",
    "read_workspace_file",
    "render_skill",
    "skill_problems",
    "strip_leading_comments",
]

HEAD_LINE = 2  # The first line is the fence.
NOT_THERE = "A skill begins with front matter: a line of ---, its keys, and a line of --- again."
NOT_THE_SAME = "The skill would not read back the same; look at the keys of its own."


class UnfitSkill(ValueError):
    """A skill that no SKILL.md can hold."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


@dataclass(frozen=True)
class ParsedSkill:
    """What a SKILL.md says; spaces around values and the kind of line ends are settled here."""

    name: str
    description: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: str = ""
    metadata: tuple[tuple[str, str], ...] = ()  # Pairs, so that the whole is frozen; dict() takes them.
    disable_model_invocation: bool = False
    body: str = ""
    extra: str = ""  # The lines of keys we do not know, so that writing a skill loses no key.

    def __post_init__(self) -> None:
        for field in ("description", "license", "compatibility", "allowed_tools"):
            self._settle(field, newlines(getattr(self, field)).strip())
        pairs = {newlines(key): newlines(value) for key, value in self.metadata}
        self._settle("metadata", tuple(pairs.items()))
        self._settle("name", settled_name(self.name))
        self._settle("body", newlines(self.body))

    def _settle(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)


@dataclass(frozen=True)
class Reading:
    """A skill as far as it could be read, and all that is wrong with it; a harness judges the two."""

    skill: ParsedSkill | None
    problems: tuple[Problem, ...] = ()


def parse_skill(source: str | bytes, *, folder_name: str = "", max_bytes: int = MAX_BYTES) -> Reading:
    """Read a SKILL.md as far as that is safe, with every problem by line; never raises for its content."""
    text, problems = decode(source, max_bytes)
    if problems:
        return Reading(None, problems)
    try:
        head, body, body_line = split(text)
    except FrontMatterError as error:
        return Reading(None, _from_head(error))
    if body_line == 1:
        return Reading(None, (Problem("", NOT_THERE, 1, Flaw.FRONT_MATTER),))
    return _read(head, body, unreadable_characters(body, "body", body_line), folder_name)


def render_skill(skill: ParsedSkill) -> str:
    """Write a SKILL.md that reads back as the same skill, or raise with the reasons why none can."""
    head = yaml.dump(_values(skill), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=MAX_BYTES)
    text = join(head + skill.extra, skill.body)
    reading = parse_skill(text)
    if reading.skill is None:
        raise UnfitSkill(reading.problems)
    if reading.skill != skill:
        raise UnfitSkill([Problem("extra", NOT_THE_SAME)])
    return text


def _read(head: str, body: str, unreadable: tuple[Problem, ...], folder: str) -> Reading:
    try:
        blocks = load(head, HEAD_LINE)
    except FrontMatterError as error:
        return Reading(None, _from_head(error) + unreadable)
    values = {block.key: block.value for block in blocks if block.key in CHECKS and block.key is not None}
    problems = (*_head_problems(values, blocks, folder), *unreadable)
    return Reading(None if unreadable else _skill(values, blocks, body, folder), problems)


def _from_head(error: FrontMatterError) -> tuple[Problem, ...]:
    return tuple(Problem(one.field, one.message, one.line, Flaw.FRONT_MATTER) for one in error.problems)


def _head_problems(values: Mapping[str, Value], blocks: tuple[Block, ...], folder: str) -> list[Problem]:
    lines = {block.key: block.line for block in blocks}
    flaws = head_flaws(values, folder)
    # What may come in any number is cut by itself, so that small problems never hide a grave one.
    many = (_unknown_fields(blocks), _flow_styles(blocks))
    problems = [Problem(field, message, lines.get(field, 1), flaw) for field, flaw, message in flaws]
    problems += [problem for kind in many for problem in islice(kind, MAX_PROBLEMS)]
    return sorted(problems, key=lambda problem: problem.line)


def _unknown(blocks: Iterable[Block]) -> Iterator[tuple[str, Block]]:
    return ((block.key, block) for block in blocks if block.key is not None and block.key not in CHECKS)


def _unknown_fields(blocks: Iterable[Block]) -> Iterator[Problem]:
    for key, block in _unknown(blocks):
        message = f'"{key[:64]}" is no field of the Agent Skills rules; "metadata" takes keys of your own.'
        yield Problem(key, message, block.line, Flaw.UNKNOWN_FIELD)


def _flow_styles(blocks: Iterable[Block]) -> Iterator[Problem]:
    """Brackets and braces: the reference refuses them, most harnesses read them."""
    message = "Write one entry per line, without brackets or braces around them."
    for block in blocks:
        yield from (Problem(block.key or "", message, line, Flaw.FLOW_STYLE) for line in block.flow_lines)


def _skill(
    values: Mapping[str, Value], blocks: tuple[Block, ...], body: str, folder: str
) -> ParsedSkill | None:
    name, switch = values.get("name", ""), values.get("disable-model-invocation", "")
    name = name if isinstance(name, str) and name.strip() else folder
    if not name.strip():
        return None  # Nothing to list or call it by.
    return ParsedSkill(
        name=name,
        description=_text(values.get("description", "")),
        license=_text(values.get("license", "")),
        compatibility=_text(values.get("compatibility", "")),
        allowed_tools=_tools(values.get("allowed-tools", "")),
        metadata=tuple(_pairs(values.get("metadata", ""))),
        disable_model_invocation=isinstance(switch, str) and SWITCHES.get(switch.lower(), False),
        body=body,
        extra="".join(block.source for _, block in _unknown(blocks)),
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tools(value: Value) -> str:
    if not isinstance(value, list) or not is_list_of_text(value):
        return _text(value)
    parts = [_text(part) for part in value]
    # Bash(git add *) has a space of its own; a comma then keeps the entries apart.
    return (", " if any(" " in part for part in parts) else " ").join(parts)


def _pairs(value: Value) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from ((key, _text(part)) for key, part in value.items())


def _values(skill: ParsedSkill) -> Mapping[str, object]:
    values = {field: getattr(skill, field.replace("-", "_")) for field in CHECKS}
    return {field: dict(value) if field == "metadata" else value for field, value in values.items() if value}


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a block, which people can read and edit."""


def _represent(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    # Written bare, a separator would be refused; after a block that ends in blank lines PyYAML writes "...".
    if text.endswith("\n") or set(text) & set("\u2028\u2029"):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)
