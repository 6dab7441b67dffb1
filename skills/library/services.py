"""Skills as files: taken in as records, copied from found ones, handed out as a folder."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.front_matter import load, newlines, split
from personas.actors import Actor
from personas.errors import DomainError, Invalid
from personas.models import Agent, Workspace
from personas.records.services import create_record, edit_record, locked
from skills.archives import write_zip
from skills.library.metadata import LONGEST, is_editable
from skills.library.selectors import folder_of
from skills.models import ContextFile, FileRevision, Skill, Verdict
from skills.skill_format.decode import decode
from skills.skill_format.parser import HEAD_LINE, ParsedSkill, Problem, UnfitSkill, parse_skill, render_skill
from skills.skill_format.tolerance import STRICT, weigh

FILE_NAME = "SKILL.md"
UNEDITABLE = format_lazy(
    gettext_lazy(
        "Metadata is kept as one “key: value” per line: no line breaks, no colon in a key, "
        "and at most {most} characters in all."
    ),
    most=f"{LONGEST:,}",
)
NO_BODY = gettext_lazy("There are no instructions below the head; a skill that is written here needs some.")
# Columns that a file calls otherwise.
KEYS = {
    "allowed_tools": "allowed-tools",
    "disable_model_invocation": "disable-model-invocation",
    NON_FIELD_ERRORS: "",
}


class NotASkill(DomainError):
    """A file that cannot become a skill, with every reason by field and line."""

    code = "invalid"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__(" ".join(problem.message for problem in self.problems))


class NotExportable(DomainError):
    """A skill that no file can hold."""

    code = "not_exportable"


class NotCopyable(DomainError):
    """A found skill whose words nobody should spread."""

    code = "not_copyable"


@transaction.atomic
def import_skill(
    workspace: Workspace, source: bytes | str, *, by: Actor, folder: str = "", message: str = ""
) -> tuple[Skill, tuple[Problem, ...]]:
    """Make a skill of a SKILL.md; what was kept in another form than written is handed back as warnings."""
    reading = parse_skill(source, folder_name=folder)
    # By the letter of the standard: a key that no column holds is refused, since it would be lost.
    verdict = weigh(reading, STRICT)
    if reading.skill is None:
        raise NotASkill(verdict.reasons)
    values = values_of(reading.skill)
    refuse(verdict.reasons, refusals_of(workspace, values), source)
    try:
        skill = create_record(Skill, workspace, values, by=by, message=message)
    except Invalid as error:
        raise NotASkill(placed(error, source)) from error
    return skill, verdict.warnings


def refuse(reasons: Sequence[Problem], refusals: Invalid, source: bytes | str) -> None:
    """All that is wrong at once: with the file, and with the record that would come of it."""
    told = {problem.field for problem in reasons}
    more = [problem for problem in placed(refusals, source) if problem.field not in told]
    if reasons or more:
        raise NotASkill([*reasons, *more])


def refusals_of(workspace: Workspace, values: dict[str, Any]) -> Invalid:
    """What the columns say to the values, asked before anything is written."""
    errors: dict[str, list[str]] = {}
    try:
        Skill(workspace=workspace, **values).full_clean()
    except ValidationError as error:
        errors = Invalid.from_validation(error).errors
    if not values["body"]:
        errors["body"] = [str(NO_BODY)]
    if not is_editable(values["metadata"]):
        errors["metadata"] = [str(UNEDITABLE)]
    return Invalid(errors)


def is_same(skill: Skill, source: bytes | str) -> bool:
    """Whether the file says what the skill says."""
    parsed = parse_skill(source).skill
    return parsed is not None and all(
        getattr(skill, name) == value for name, value in values_of(parsed).items()
    )


def values_of(parsed: ParsedSkill) -> dict[str, Any]:
    """What of the file goes into which column."""
    names = ("name", "description", "license", "compatibility", "allowed_tools", "disable_model_invocation")
    values = {name: getattr(parsed, name) for name in names}
    metadata = {key.strip(): value.strip() for key, value in parsed.metadata}
    return values | {"metadata": metadata, "body": parsed.body.strip("\n")}


def placed(error: Invalid, source: bytes | str) -> list[Problem]:
    """The record's refusals, each with the line of the file that it speaks of."""
    lines = lines_of(source)
    return [
        Problem(key, said, lines.get(key, 1))
        for name, messages in error.errors.items()
        for key in [KEYS.get(name, name)]
        for said in messages
    ]


def lines_of(source: bytes | str) -> dict[str, int]:
    """Where each key of a sound file stands, and where its body begins."""
    text, _ = decode(source)
    head, _, body_line = split(text)
    keys = {block.key: block.line for block in load(head, HEAD_LINE) if block.key is not None}
    last = newlines(text).rstrip("\n").count("\n") + 1
    return keys | {"body": min(body_line, last)}


@transaction.atomic
def copy_found_skill(file: ContextFile, *, by: Actor) -> tuple[Skill, tuple[Problem, ...]]:
    """Make a found skill one that is written here; no agent has the copy until someone hands it out."""
    source = file.source
    revision = copyable_revision(file)
    return import_skill(
        source.workspace,
        bytes(revision.content.data or b""),
        by=by,
        folder=folder_of(file.path),
        message=f"Copied from {source.slug}/{file.path}"[:200],
    )


def copyable_revision(file: ContextFile) -> FileRevision:
    """What prompts use, else the newest; an editor's copy is no way round a quarantine."""
    revision = file.in_force or file.newest
    if file.file_kind != "skill" or revision is None or revision.content.data is None:
        raise NotCopyable(_("Only a skill whose words are here is copied."))
    if file.in_force is None and revision.verdict == Verdict.BLOCKED:
        raise NotCopyable(
            _("This revision is in quarantine. Mend the file, or have its findings waived first.")
        )
    return revision


def skill_archive(skill: Skill) -> bytes:
    """The skill as a zip with one folder, as other programs expect it."""
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
        return write_zip([(f"{skill.name}/{FILE_NAME}", render_skill(parsed).encode())])
    except UnfitSkill as error:
        raise NotExportable(
            _("This skill does not fit into a file: %(problem)s") % {"problem": error}
        ) from error


@transaction.atomic
def give_skill(skill: Skill, agent: Agent, *, by: Actor) -> Skill:
    """One more agent has it; whoever has it already goes on having it."""
    skill = locked(skill)
    refuse_unless_chosen(skill)
    holders = holders_of(skill)
    if agent in holders:
        return skill
    return change_holders(skill, [*holders, agent], f"Given to {agent}", by=by)


@transaction.atomic
def take_skill(skill: Skill, agent: Agent, *, by: Actor) -> Skill:
    """One agent fewer has it."""
    skill = locked(skill)
    refuse_unless_chosen(skill)
    holders = holders_of(skill)
    if agent not in holders:
        raise DomainError(_("%(agent)s does not have it.") % {"agent": agent})
    return change_holders(skill, [one for one in holders if one != agent], f"Taken from {agent}", by=by)


@transaction.atomic
def give_skill_to_all(skill: Skill, *, by: Actor) -> Skill:
    """Every agent has it, those to come too."""
    skill = locked(skill)
    values = {"for_all_agents": True}
    return edit_record(skill, values, expected=skill.revision, by=by, message="Given to all agents")


def refuse_unless_chosen(skill: Skill) -> None:
    if skill.is_archived:
        raise DomainError(_("It is archived."))
    if skill.for_all_agents:
        raise DomainError(_("Every agent has it."))


def holders_of(skill: Skill) -> list[Agent]:
    rows = Agent.objects.in_workspace(skill.workspace_id).filter(skill_links__skill=skill)
    return list(rows.order_by("pk"))


def change_holders(skill: Skill, agents: list[Agent], said: str, *, by: Actor) -> Skill:
    values = {"agents": agents}
    return edit_record(skill, values, expected=skill.revision, by=by, message=said[:200])
