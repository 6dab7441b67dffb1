"""Parse SKILL.md to an immutable skill, and render it back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import yaml

from core.text.front_matter import (
    MAX_PROBLEMS,
    FrontMatterError,
    YamlBlock,
    YamlValue,
    join_front_matter,
    normalize_newlines,
    parse_front_matter,
    split_front_matter,
)
from skills.skill_format.decode import (
    MAX_FILE_BYTES,
    WorkspaceText,
    decode_text,
    list_unreadable_characters,
    read_workspace_file,
    strip_leading_comments,
)
from skills.skill_format.rules import (
    BOOLEAN_VALUES,
    FIELD_CHECKS,
    SkillFlaw,
    SkillProblem,
    find_front_matter_flaws,
    is_text_list,
    list_skill_problems,
    normalize_skill_name,
)

# python-frontmatter is used only as a cross-check in the tests: it follows aliases, turns `no` into False,
# silently keeps the last of two equal keys, and loses line numbers.
__all__ = [
    "InvalidSkill",
    "ParsedSkill",
    "SkillFlaw",
    "SkillParseResult",
    "SkillProblem",
    "WorkspaceText",
    "list_skill_problems",
    "parse_skill",
    "read_workspace_file",
    "render_skill",
    "strip_leading_comments",
]

FRONT_MATTER_LINE = 2  # Line 1 is the opening "---".
MISSING_FRONT_MATTER_MESSAGE = (
    "A skill must start with front matter: a --- line, the keys, and another --- line."
)
ROUND_TRIP_MESSAGE = "The skill cannot be stored without changes. Check its additional keys."


class InvalidSkill(ValueError):
    """A skill that cannot be written as SKILL.md."""

    def __init__(self, problems: Iterable[SkillProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


@dataclass(frozen=True)
class ParsedSkill:
    """The content of a SKILL.md, with values stripped and line ends normalized."""

    name: str
    description: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: str = ""
    metadata: tuple[tuple[str, str], ...] = ()  # Pairs instead of a dict keep the class hashable.
    disable_model_invocation: bool = False
    body: str = ""
    extra: str = ""  # The source lines of unknown keys, so that rendering keeps them.

    def __post_init__(self) -> None:
        for field in ("description", "license", "compatibility", "allowed_tools"):
            self._set_field(field, normalize_newlines(getattr(self, field)).strip())
        pairs = {normalize_newlines(key): normalize_newlines(value) for key, value in self.metadata}
        self._set_field("metadata", tuple(pairs.items()))
        self._set_field("name", normalize_skill_name(self.name))
        self._set_field("body", normalize_newlines(self.body))

    def _set_field(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)


@dataclass(frozen=True)
class SkillParseResult:
    """The parsed skill, None if it could not be parsed, and all problems.

    Whether a problem matters depends on the harness, see tolerance.py.
    """

    skill: ParsedSkill | None
    problems: tuple[SkillProblem, ...] = ()


def parse_skill(
    source: str | bytes, *, folder_name: str = "", max_bytes: int = MAX_FILE_BYTES
) -> SkillParseResult:
    """Parse a SKILL.md and collect all problems with their lines. Never raises because of the content."""
    text, problems = decode_text(source, max_bytes)
    if problems:
        return SkillParseResult(None, problems)
    try:
        head, body, body_line = split_front_matter(text)
    except FrontMatterError as error:
        return SkillParseResult(None, _convert_front_matter_error(error))
    if body_line == 1:
        return SkillParseResult(
            None, (SkillProblem("", MISSING_FRONT_MATTER_MESSAGE, 1, SkillFlaw.FRONT_MATTER),)
        )
    return _parse_parts(head, body, list_unreadable_characters(body, "body", body_line), folder_name)


def render_skill(skill: ParsedSkill) -> str:
    """Render a SKILL.md that parses to the same skill, or raise InvalidSkill."""
    head = yaml.dump(
        _get_field_values(skill),
        Dumper=_SkillDumper,
        allow_unicode=True,
        sort_keys=False,
        width=MAX_FILE_BYTES,
    )
    text = join_front_matter(head + skill.extra, skill.body)
    result = parse_skill(text)
    if result.skill is None:
        raise InvalidSkill(result.problems)
    if result.skill != skill:
        raise InvalidSkill([SkillProblem("extra", ROUND_TRIP_MESSAGE)])
    return text


def _parse_parts(head: str, body: str, unreadable: tuple[SkillProblem, ...], folder: str) -> SkillParseResult:
    try:
        blocks = parse_front_matter(head, FRONT_MATTER_LINE)
    except FrontMatterError as error:
        return SkillParseResult(None, _convert_front_matter_error(error) + unreadable)
    values = {
        block.key: block.value for block in blocks if block.key in FIELD_CHECKS and block.key is not None
    }
    problems = (*_list_field_problems(values, blocks, folder), *unreadable)
    return SkillParseResult(None if unreadable else _build_skill(values, blocks, body, folder), problems)


def _convert_front_matter_error(error: FrontMatterError) -> tuple[SkillProblem, ...]:
    return tuple(
        SkillProblem(problem.field, problem.message, problem.line, SkillFlaw.FRONT_MATTER)
        for problem in error.problems
    )


def _list_field_problems(
    values: Mapping[str, YamlValue], blocks: tuple[YamlBlock, ...], folder: str
) -> list[SkillProblem]:
    lines = {block.key: block.line for block in blocks}
    flaws = find_front_matter_flaws(values, folder)
    # Problems that can occur any number of times are limited to MAX_PROBLEMS each. The others are few, and
    # all of them are reported.
    unbounded = (_find_unknown_fields(blocks), _find_flow_styles(blocks))
    problems = [SkillProblem(field, message, lines.get(field, 1), flaw) for field, flaw, message in flaws]
    problems += [problem for kind in unbounded for problem in islice(kind, MAX_PROBLEMS)]
    return sorted(problems, key=lambda problem: problem.line)


def _iter_unknown_blocks(blocks: Iterable[YamlBlock]) -> Iterator[tuple[str, YamlBlock]]:
    return ((block.key, block) for block in blocks if block.key is not None and block.key not in FIELD_CHECKS)


def _find_unknown_fields(blocks: Iterable[YamlBlock]) -> Iterator[SkillProblem]:
    for key, block in _iter_unknown_blocks(blocks):
        message = (
            f'"{key[:64]}" is not a field of the Agent Skills specification. '
            'Put your own keys under "metadata".'
        )
        yield SkillProblem(key, message, block.line, SkillFlaw.UNKNOWN_FIELD)


def _find_flow_styles(blocks: Iterable[YamlBlock]) -> Iterator[SkillProblem]:
    """Find flow style (brackets and braces), which the reference parser rejects but most harnesses accept."""
    message = "Write one entry per line, without brackets or braces."
    for block in blocks:
        yield from (
            SkillProblem(block.key or "", message, line, SkillFlaw.FLOW_STYLE) for line in block.flow_lines
        )


def _build_skill(
    values: Mapping[str, YamlValue], blocks: tuple[YamlBlock, ...], body: str, folder: str
) -> ParsedSkill | None:
    name, switch = values.get("name", ""), values.get("disable-model-invocation", "")
    name = name if isinstance(name, str) and name.strip() else folder
    if not name.strip():
        return None  # A skill without a name cannot be listed.
    return ParsedSkill(
        name=name,
        description=_format_value(values.get("description", "")),
        license=_format_value(values.get("license", "")),
        compatibility=_format_value(values.get("compatibility", "")),
        allowed_tools=_format_tools(values.get("allowed-tools", "")),
        metadata=tuple(_iter_metadata_pairs(values.get("metadata", ""))),
        disable_model_invocation=isinstance(switch, str) and BOOLEAN_VALUES.get(switch.lower(), False),
        body=body,
        extra="".join(block.source for _, block in _iter_unknown_blocks(blocks)),
    )


def _format_value(value: YamlValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _format_tools(value: YamlValue) -> str:
    if not isinstance(value, list) or not is_text_list(value):
        return _format_value(value)
    parts = [_format_value(part) for part in value]
    # If an entry contains a space, such as Bash(git add *), the entries are separated by commas.
    return (", " if any(" " in part for part in parts) else " ").join(parts)


def _iter_metadata_pairs(value: YamlValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from ((key, _format_value(part)) for key, part in value.items())


def _get_field_values(skill: ParsedSkill) -> Mapping[str, object]:
    values = {field: getattr(skill, field.replace("-", "_")) for field in FIELD_CHECKS}
    return {field: dict(value) if field == "metadata" else value for field, value in values.items() if value}


class _SkillDumper(yaml.SafeDumper):
    """Writes multi-line text as a literal block, which is easier to edit."""


def _represent_text(dumper: _SkillDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    # Unicode line separators must be quoted. Text with a newline at the end is quoted too, because PyYAML
    # would write "..." after such a literal block.
    if text.endswith("\n") or set(text) & set("\u2028\u2029"):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_SkillDumper.add_representer(str, _represent_text)
