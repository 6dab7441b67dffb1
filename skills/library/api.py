"""SKILL.md in and out: the text of a file becomes a skill, a skill becomes the text of a file."""

from collections.abc import Iterable
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from django.db.models import Prefetch, Q, QuerySet
from django.urls import URLPattern
from rest_framework.renderers import BaseRenderer, JSONRenderer

from personas.api.authentication import Caller
from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.record_resource import RecordResource
from personas.api.responses import Answer, answered
from personas.api.schema import Shape, line, listed, shape, slug
from personas.api.views import endpoint, view_of
from personas.errors import Invalid
from personas.models import Agent, Workspace
from personas.records.services import Values
from personas.roles import Permission
from skills.api_helpers import PROBLEM, TEXT, refuse_limited, skill_problem_told
from skills.library.metadata import LONGEST, is_editable
from skills.library.selectors import skills_of
from skills.library.services import FILE_NAME, UNEDITABLE, NotASkill, import_skill, skill_archive
from skills.models import Skill, SkillLink
from skills.skill_format.decode import MAX_BYTES
from skills.skill_format.parser import Problem

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


METADATA: Shape = {
    "type": "object",
    "additionalProperties": line(LONGEST),
    "propertyNames": line(200, least=1),
    "description": "Further keys of the head, each with a line of text.",
}


class Skills(RecordResource[Skill]):
    """Know-how in Markdown; a key that is limited to agents reads what those have, and changes none."""

    model = Skill
    name, one = "skills", "skill"
    key, converter = "name", "word"
    searched = ("name", "description")
    lists = {"agents": (Agent, "slug")}
    more = {"name": slug(description="Lower-case letters, digits and hyphens."), "metadata": METADATA}
    agent_path = "agent_links__agent__slug"
    filters = {"agent": slug(description="Only skills that this agent was given, those for all included.")}

    def rows(self, workspace: Workspace) -> QuerySet[Skill]:
        return skills_of(workspace).prefetch_related("agent_links__agent")

    def visible(self, caller: Caller) -> QuerySet[Skill]:
        """With a limited key, a skill names only the agents that the key is for."""
        rows = super().visible(caller)
        if caller.agents is None:
            return rows
        links = SkillLink.objects.in_workspace(caller.workspace).filter(agent__slug__in=caller.agents)
        own = Prefetch("agent_links", queryset=links.select_related("agent"))
        return rows.prefetch_related(None).prefetch_related(own)

    def of_agents(self, rows: QuerySet[Skill], agents: Iterable[str]) -> QuerySet[Skill]:
        return rows.filter(Q(for_all_agents=True) | Q(agent_links__agent__slug__in=list(agents)))

    def narrowed(self, rows: QuerySet[Skill], call: Call) -> QuerySet[Skill]:
        agent = call.query.get("agent")
        return self.of_agents(rows, [agent]) if agent else rows

    def list_told(self, record: Skill, name: str) -> list[Any]:
        return sorted(link.agent.slug for link in record.agent_links.all())

    def values(self, call: Call, *, is_new: bool = False) -> tuple[Values, str]:
        refuse_limited(call)
        values, message = super().values(call, is_new=is_new)
        if "metadata" in values:
            values["metadata"] = settled_metadata(values["metadata"])
        return values, message

    def remove(self, call: Call, key: Any) -> Answer:
        refuse_limited(call)
        return super().remove(call, key)

    def restore(self, call: Call, key: Any) -> Answer:
        refuse_limited(call)
        return super().restore(call, key)

    def go_back(self, call: Call, key: Any, number: int) -> Answer:
        refuse_limited(call)
        return super().go_back(call, key, number)

    def history(self, call: Call, key: Any) -> Answer:
        """Old revisions name every agent that ever had the skill."""
        refuse_limited(call)
        return super().history(call, key)

    def more_urls(self) -> list[URLPattern]:
        return [import_url(self), export_url(self)]


def settled_metadata(said: dict[str, str]) -> dict[str, str]:
    """As a person's form would keep it, or refused."""
    metadata = {key.strip(): value.strip() for key, value in said.items()}
    if not is_editable(metadata):
        raise Invalid.on("metadata", UNEDITABLE)
    return metadata


urlpatterns = Skills().urls()
