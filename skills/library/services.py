"""Import, copy and export skills as SKILL.md files, and assign skills to agents."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.front_matter import normalize_newlines, parse_front_matter, split_front_matter
from personas.actors import Actor
from personas.errors import DomainError, InvalidInput
from personas.models import Agent, Workspace
from personas.records.services import create_record, edit_record, lock_record
from skills.archives import write_zip
from skills.library.metadata import MAX_METADATA_LENGTH, is_metadata_editable
from skills.library.selectors import get_folder_name, list_uncopied_files
from skills.models import ContextFile, FileRevision, Skill
from skills.skill_format.decode import decode_text
from skills.skill_format.parser import (
    FRONT_MATTER_LINE,
    InvalidSkill,
    ParsedSkill,
    SkillProblem,
    parse_skill,
    render_skill,
)
from skills.skill_format.tolerance import STRICT_TOLERANCE, apply_tolerance

SKILL_FILE_NAME = "SKILL.md"
# Size of the cache of rendered skills. Each build renders its agents' skills, and few change between builds.
RENDERED_SKILLS = 100
METADATA_FORMAT_MESSAGE = format_lazy(
    gettext_lazy(
        "Metadata must have one “key: value” pair per line. Keys and values "
        "cannot contain line breaks, keys cannot contain colons, and all metadata "
        "together can have at most {most} characters."
    ),
    most=f"{MAX_METADATA_LENGTH:,}",
)
MISSING_BODY_MESSAGE = gettext_lazy("The instructions are missing. Add them below the front matter.")
# Front matter keys by field name, where the two differ.
HEAD_KEYS = {
    "allowed_tools": "allowed-tools",
    "disable_model_invocation": "disable-model-invocation",
    NON_FIELD_ERRORS: "",
}


class InvalidSkillFile(DomainError):
    """The file cannot be stored as a skill. `problems` holds each reason with its field and line number."""

    code = "invalid"

    def __init__(self, problems: Iterable[SkillProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__(" ".join(problem.message for problem in self.problems))


class SkillNotExportable(DomainError):
    """The skill cannot be written as a SKILL.md."""

    code = "not_exportable"


class SkillNotCopyable(DomainError):
    """The file cannot be copied: it is quarantined, its content was erased, or it is not a skill."""

    code = "not_copyable"


@transaction.atomic
def import_skill(
    workspace: Workspace, source: bytes | str, *, by: Actor, folder: str = "", message: str = ""
) -> tuple[Skill, tuple[SkillProblem, ...]]:
    """Create a skill from a SKILL.md. Return the skill and the warnings.

    A warning names a value that was stored in a different form than in the file.
    """
    reading = parse_skill(source, folder_name=folder)
    # Strict: an unknown front matter key is an error, because no column of the record can store it.
    verdict = apply_tolerance(reading, STRICT_TOLERANCE)
    if reading.skill is None:
        raise InvalidSkillFile(verdict.reasons)
    values = get_skill_values(reading.skill)
    check_import_problems(verdict.reasons, find_record_errors(workspace, values), source)
    try:
        skill = create_record(Skill, workspace, values, by=by, message=message)
    except InvalidInput as error:
        raise InvalidSkillFile(locate_problems(error, source)) from error
    return skill, verdict.warnings


def check_import_problems(
    reasons: Sequence[SkillProblem], refusals: InvalidInput, source: bytes | str
) -> None:
    """Raise one InvalidSkillFile with all problems of the file and of the record that it would create.

    A record's problem is left out if the file already has a problem in the same field.
    """
    reported_fields = {problem.field for problem in reasons}
    other_problems = [
        problem for problem in locate_problems(refusals, source) if problem.field not in reported_fields
    ]
    if reasons or other_problems:
        raise InvalidSkillFile([*reasons, *other_problems])


def find_record_errors(workspace: Workspace, values: dict[str, Any]) -> InvalidInput:
    """Return the validation errors of a skill record with these values. Nothing is saved."""
    errors: dict[str, list[str]] = {}
    try:
        Skill(workspace=workspace, **values).full_clean()
    except ValidationError as error:
        errors = InvalidInput.from_validation(error).errors
    if not values["body"]:
        errors["body"] = [str(MISSING_BODY_MESSAGE)]
    if not is_metadata_editable(values["metadata"]):
        errors["metadata"] = [str(METADATA_FORMAT_MESSAGE)]
    return InvalidInput(errors)


def is_same_skill(skill: Skill, source: bytes | str) -> bool:
    """Return whether the file has the same content as the skill."""
    parsed = parse_skill(source).skill
    return parsed is not None and all(
        getattr(skill, name) == value for name, value in get_skill_values(parsed).items()
    )


def get_skill_values(parsed: ParsedSkill) -> dict[str, Any]:
    """Return the field values of the skill record for a parsed SKILL.md."""
    names = ("name", "description", "license", "compatibility", "allowed_tools", "disable_model_invocation")
    values = {name: getattr(parsed, name) for name in names}
    metadata = {key.strip(): value.strip() for key, value in parsed.metadata}
    return values | {"metadata": metadata, "body": parsed.body.strip("\n")}


def locate_problems(error: InvalidInput, source: bytes | str) -> list[SkillProblem]:
    """Convert the record's validation errors to problems with line numbers in the file."""
    lines = find_key_lines(source)
    return [
        SkillProblem(key, message, lines.get(key, 1))
        for name, messages in error.errors.items()
        for key in [HEAD_KEYS.get(name, name)]
        for message in messages
    ]


def find_key_lines(source: bytes | str) -> dict[str, int]:
    """Return the line number of each front matter key and, under the key "body", of the start of the body."""
    text, _ = decode_text(source)
    head, _, body_line = split_front_matter(text)
    keys = {
        block.key: block.line
        for block in parse_front_matter(head, FRONT_MATTER_LINE)
        if block.key is not None
    }
    last = normalize_newlines(text).rstrip("\n").count("\n") + 1
    return keys | {"body": min(body_line, last)}


class CopiedSkill(NamedTuple):
    """The copy of a discovered skill, the warnings of the import, and the files that were not copied."""

    skill: Skill
    warnings: tuple[SkillProblem, ...]
    # Paths relative to the skill's folder.
    not_copied: list[str]


@transaction.atomic
def copy_found_skill(file: ContextFile, *, by: Actor) -> CopiedSkill:
    """Create a skill record from the SKILL.md of a discovered skill.

    The copy is not assigned to any agent. Further files of the skill are listed but not copied, because a
    skill record consists of its SKILL.md only.
    """
    source = file.source
    revision = get_copyable_revision(file)
    skill, warnings = import_skill(
        source.workspace,
        bytes(revision.content.data or b""),
        by=by,
        folder=get_folder_name(file.path),
        message=f"Copied from {source.slug}/{file.path}"[:200],
    )
    return CopiedSkill(skill, warnings, list_uncopied_files(file, skill.body))


def get_copyable_revision(file: ContextFile) -> FileRevision:
    """Return the revision to copy: the active one, otherwise the latest.

    Raise SkillNotCopyable if there is none, if it was erased, or if the scanner blocks it.
    """
    revision = file.active or file.latest
    if file.file_kind != "skill" or revision is None or revision.content.data is None:
        raise SkillNotCopyable(_("Only a skill with stored text can be copied."))
    # Check the findings, not the status: an invalid file is not in quarantine, but may contain secrets too.
    is_blocked = any(finding["severity"] == "block" for finding in revision.findings)
    if file.active is None and is_blocked:
        raise SkillNotCopyable(
            _("This revision is in quarantine. Fix the file, or allow its findings first.")
        )
    return revision


def build_skill_archive(skill: Skill) -> bytes:
    """Return a zip archive of the skill: a folder with the skill's name that contains the SKILL.md."""
    return write_zip([(f"{skill.name}/{SKILL_FILE_NAME}", render_skill_file(skill))])


def render_skill_file(skill: Skill) -> bytes:
    """Return the bytes of the skill's SKILL.md; raise SkillNotExportable if it has none."""
    parsed = ParsedSkill(
        name=skill.name,
        description=skill.description,
        license=skill.license,
        compatibility=skill.compatibility,
        allowed_tools=skill.allowed_tools,
        metadata=tuple(skill.metadata.items()),
        disable_model_invocation=skill.disable_model_invocation,
        body=skill.body,
    )
    try:
        return render_skill_cached(parsed)
    except InvalidSkill as error:
        raise SkillNotExportable(
            _("This skill cannot be exported: %(problem)s") % {"problem": error}
        ) from error


@lru_cache(maxsize=RENDERED_SKILLS)
def render_skill_cached(parsed: ParsedSkill) -> bytes:
    return render_skill(parsed).encode()


@transaction.atomic
def assign_skill(skill: Skill, agent: Agent, *, by: Actor) -> Skill:
    """Assign the skill to one more agent."""
    skill = lock_record(skill)
    check_assignable(skill)
    holders = list_assigned_agents(skill)
    if agent in holders:
        return skill
    return save_assigned_agents(skill, [*holders, agent], f"Assigned to {agent}", by=by)


@transaction.atomic
def unassign_skill(skill: Skill, agent: Agent, *, by: Actor) -> Skill:
    """Remove the skill from one agent."""
    skill = lock_record(skill)
    check_assignable(skill)
    holders = list_assigned_agents(skill)
    if agent not in holders:
        raise DomainError(_("%(agent)s does not have this skill.") % {"agent": agent})
    remaining = [holder for holder in holders if holder != agent]
    return save_assigned_agents(skill, remaining, f"Removed from {agent}", by=by)


@transaction.atomic
def assign_skill_to_all(skill: Skill, *, by: Actor) -> Skill:
    """Assign the skill to all agents, including future ones."""
    skill = lock_record(skill)
    values = {"for_all_agents": True}
    return edit_record(skill, values, expected=skill.revision, by=by, message="Assigned to all agents")


def check_assignable(skill: Skill) -> None:
    if skill.is_archived:
        raise DomainError(_("This skill is archived. Restore it first."))
    if skill.for_all_agents:
        raise DomainError(_("This skill is assigned to all agents. Edit the skill to select agents."))


def list_assigned_agents(skill: Skill) -> list[Agent]:
    rows = Agent.objects.in_workspace(skill.workspace_id).filter(skill_links__skill=skill)
    return list(rows.order_by("pk"))


def save_assigned_agents(skill: Skill, agents: list[Agent], message: str, *, by: Actor) -> Skill:
    values = {"agents": agents}
    return edit_record(skill, values, expected=skill.revision, by=by, message=message[:200])
