"""SKILL.md in and out: the text of a file becomes a skill, a skill becomes the text of a file."""

from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from django.urls import URLPattern
from rest_framework.renderers import BaseRenderer, JSONRenderer

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered
from personas.api.schema import line, listed, shape
from personas.api.views import endpoint, view_of
from personas.roles import Permission
from skills.api_helpers import PROBLEM, TEXT, refuse_limited, skill_problem_told
from skills.library.services import FILE_NAME, NotASkill, import_skill, skill_archive
from skills.models import Skill
from skills.skill_format.decode import MAX_BYTES
from skills.skill_format.parser import Problem

if TYPE_CHECKING:
    from skills.library.skills import Skills

JSON, MARKDOWN = "application/json", "text/markdown"
WARNINGS = listed(PROBLEM, description="What was kept in another form than written.")
FILE = shape({"name": TEXT, "text": TEXT})
SENT = shape(
    {
        "text": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_BYTES,
            "description": "A whole SKILL.md: its head between lines of ---, then the instructions.",
        },
        "message": line(200, description="Why; it stands in the history."),
    },
    required=["text"],
)
EXAMPLE = {"text": "---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"}


class Markdown(BaseRenderer):
    """Lets callers who accept Markdown only through; the answer is written by the base."""

    media_type = MARKDOWN
    format = "md"


def import_url(skills: "Skills") -> URLPattern:
    def take_in(call: Call) -> Answer:
        refuse_limited(call)
        said: dict[str, Any] = call.body
        try:
            made = import_skill(call.workspace, said["text"], by=call.actor, message=said.get("message", ""))
        except NotASkill as error:
            raise ProblemError(invalid(map(unfit, error.problems))) from error
        return taken(skills, *made)

    return endpoint(
        "skills:import",
        "skills-import",
        post=Operation(
            take_in,
            "Make a skill of a SKILL.md; no agent has it yet",
            permission=Permission.EDIT,
            body=SENT,
            body_example=EXAMPLE,
            answer=shape({"skill": skills.answer(), "warnings": WARNINGS}),
            status=201,
            is_retryable=True,
            tag=skills.name,
        ),
    )


def taken(skills: "Skills", skill: Skill, warnings: tuple[Problem, ...]) -> Answer:
    told = skills.told(skills.fresh(skill))
    said = {"skill": told, "warnings": [skill_problem_told(one) for one in warnings]}
    return answered(said, 201, ETag=told["etag"], Location=skills.address(skill))


def unfit(problem: Problem) -> FieldError:
    where = f"Line {problem.line}: " if problem.line else ""
    return FieldError(f"{where}{problem.message}", "/text")


def export_url(skills: "Skills") -> URLPattern:
    def hand_out(call: Call, key: str) -> Answer:
        skill = skills.find(call, key)
        text = file_of(skill)
        if wants_json(call.headers.get("Accept", "")):
            return answered({"name": skill.name, "text": text.decode()})
        return Answer(200, text, content_type=f"{MARKDOWN}; charset=utf-8")

    pattern = endpoint(
        f"skills/<{skills.converter}:key>/file",
        "skills-file",
        get=Operation(
            hand_out,
            "A skill as a SKILL.md",
            bots=True,
            answer=FILE,
            other_answers={MARKDOWN: {"schema": TEXT}},
            refusals={409: "refused"},
            note="Markdown, unless application/json is what you accept.",
            tag=skills.name,
        ),
    )
    if view := view_of(pattern):
        view.renderer_classes = (Markdown, JSONRenderer)
    return pattern


def file_of(skill: Skill) -> bytes:
    """The one file in the folder that the pages hand out."""
    with ZipFile(BytesIO(skill_archive(skill))) as archive:
        return archive.read(f"{skill.name}/{FILE_NAME}")


def wants_json(accept: str) -> bool:
    return JSON in accept and MARKDOWN not in accept
