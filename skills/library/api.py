"""API for skill records, with import from and export to SKILL.md."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.urls import URLPattern

from personas.api.authentication import ApiClient
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches, check_key_limits
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.record_resource import RecordResource
from personas.api.record_schema import MESSAGE_SCHEMA
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    SKILL_FILE_FORMAT,
    Schema,
    array_schema,
    line_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.errors import InvalidInput
from personas.models import Agent, Workspace
from personas.records.services import FieldValues
from personas.roles import Permission
from skills.api_helpers import PROBLEM_SCHEMA, TEXT_SCHEMA, skill_problem_json
from skills.library.metadata import MAX_METADATA_LENGTH, is_metadata_editable
from skills.library.selectors import list_skills
from skills.library.services import (
    METADATA_FORMAT_MESSAGE,
    InvalidSkillFile,
    import_skill,
    render_skill_file,
)
from skills.models import Skill, SkillLink
from skills.skill_format.decode import MAX_FILE_BYTES
from skills.skill_format.parser import SkillProblem

JSON_TYPE, MARKDOWN_TYPE = "application/json", "text/markdown"
WARNINGS_SCHEMA = array_schema(PROBLEM_SCHEMA, description="Values that were stored in a different form.")
SKILL_FILE_SCHEMA = object_schema({"name": TEXT_SCHEMA, "text": TEXT_SCHEMA}, title="SkillFile")
IMPORT_SCHEMA = object_schema(
    {
        "text": {
            "type": "string",
            "format": SKILL_FILE_FORMAT,
            "minLength": 1,
            "maxLength": MAX_FILE_BYTES,
        },
        "message": MESSAGE_SCHEMA,
    },
    required=["text"],
    title="SkillFileInput",
)
IMPORT_EXAMPLE = {"text": "---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"}


def build_import_url(skills: "SkillResource") -> URLPattern:
    def import_file(call: ApiRequest) -> ApiResponse:
        body: dict[str, Any] = call.body
        try:
            result = import_skill(
                call.workspace, body["text"], by=call.actor, message=body.get("message", "")
            )
        except InvalidSkillFile as error:
            raise ProblemError(validation_problem(map(problem_to_field_error, error.problems))) from error
        return import_response(skills, *result)

    return endpoint(
        "skills:import",
        "skills-import",
        post=Operation(
            import_file,
            "Import a skill from a SKILL.md file",
            operation_id="importSkill",
            permission=Permission.EDIT,
            touches=Touches.WORKSPACE,
            body=IMPORT_SCHEMA,
            body_example=IMPORT_EXAMPLE,
            answer=object_schema(
                {"skill": skills.response_schema(), "warnings": WARNINGS_SCHEMA}, title="SkillImportResult"
            ),
            status=201,
            is_retryable=True,
            tag=skills.name,
        ),
    )


def import_response(
    skills: "SkillResource",
    skill: Skill,
    warnings: tuple[SkillProblem, ...],
    more: Mapping[str, Any] | None = None,
) -> ApiResponse:
    skill_json = skills.to_json(skills.reload(skill))
    body = {"skill": skill_json, "warnings": [skill_problem_json(warning) for warning in warnings]}
    body |= more or {}
    return json_response(body, 201, ETag=skill_json["etag"], Location=skills.get_url(skill))


def problem_to_field_error(problem: SkillProblem) -> FieldError:
    prefix = f"Line {problem.line}: " if problem.line else ""
    return FieldError(f"{prefix}{problem.message}", "/text")


def build_export_urls(skills: "SkillResource") -> list[URLPattern]:
    def export_file(call: ApiRequest, key: str) -> ApiResponse:
        skill = skills.find_record(call, key)
        text = render_skill_file(skill)
        if is_json_preferred(call.headers.get("Accept", "")):
            return json_response({"name": skill.name, "text": text.decode()})
        return ApiResponse(200, text, content_type=f"{MARKDOWN_TYPE}; charset=utf-8")

    options: dict[str, Any] = {
        "touches": skills.read_touches,
        "answer": SKILL_FILE_SCHEMA,
        "extra_content": {MARKDOWN_TYPE: {"schema": TEXT_SCHEMA}},
        "refusals": {409: "refused"},
        "tag": skills.name,
    }
    path = f"skills/<{skills.lookup_converter}:{skills.lookup_name}>"
    return [
        endpoint(
            f"{path}/file",
            "skills-file",
            get=Operation(
                export_file,
                "Get a skill as a SKILL.md file",
                operation_id="getSkillFile",
                **options,
            ),
        ),
    ]


def is_json_preferred(accept: str) -> bool:
    return JSON_TYPE in accept and MARKDOWN_TYPE not in accept


METADATA_SCHEMA: Schema = {
    "type": "object",
    "additionalProperties": line_schema(MAX_METADATA_LENGTH),
    "propertyNames": line_schema(200, least=1),
    # Validation skips `if`, so this only documents the rule. `clean_skill_metadata` checks it.
    "if": {},
    "then": {"propertyNames": {"pattern": "^[^:]*$"}},
    "title": "SkillMetadataInput",
    "description": "Further keys of the front matter, each with one line of text.",
}


class SkillResource(RecordResource[Skill]):
    """CRUD for skills.

    An API key that is limited to some agents can read the skills of these agents and cannot change any skill.
    """

    model = Skill
    name, singular = "skills", "skill"
    lookup_field, lookup_converter = "name", "word"
    search_fields = ("name", "description")
    link_lists = {"agents": (Agent, "slug")}
    schema_overrides = {
        "name": slug_schema(description="Lowercase letters, digits and hyphens."),
        "metadata": METADATA_SCHEMA,
    }
    agent_path = "agent_links__agent__slug"
    read_touches = Touches.AGENT
    filters = {"agent": slug_schema(description="Only skills of this agent, including those for all agents.")}

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Skill]:
        return list_skills(workspace).prefetch_related("agent_links__agent")

    def list_visible(self, caller: ApiClient) -> QuerySet[Skill]:
        """Return the skills that the API key may see.

        If the key is limited to some agents, the `agents` list of each skill contains only these agents.
        """
        rows = super().list_visible(caller)
        if caller.agents is None:
            return rows
        links = SkillLink.objects.in_workspace(caller.workspace).filter(agent__slug__in=caller.agents)
        visible_links = Prefetch("agent_links", queryset=links.select_related("agent"))
        return rows.prefetch_related(None).prefetch_related(visible_links)

    def filter_by_agents(self, rows: QuerySet[Skill], agents: Iterable[str]) -> QuerySet[Skill]:
        return rows.filter(Q(for_all_agents=True) | Q(agent_links__agent__slug__in=list(agents)))

    def apply_filters(self, rows: QuerySet[Skill], call: ApiRequest) -> QuerySet[Skill]:
        agent = call.query.get("agent")
        return self.filter_by_agents(rows, [agent]) if agent else rows

    def link_list_json(self, record: Skill, name: str) -> list[Any]:
        return sorted(link.agent.slug for link in record.agent_links.all())

    def parse_values(self, call: ApiRequest, *, is_new: bool = False) -> tuple[FieldValues, str]:
        values, message = super().parse_values(call, is_new=is_new)
        if "metadata" in values:
            values["metadata"] = clean_skill_metadata(values["metadata"])
        return values, message

    def list_history(self, call: ApiRequest, key: Any) -> ApiResponse:
        # Refuse limited keys, because old revisions list every agent that had the skill.
        check_key_limits(call.caller, Touches.WORKSPACE, is_write=False)
        return super().list_history(call, key)

    def extra_urls(self) -> list[URLPattern]:
        return [build_import_url(self), *build_export_urls(self)]


def clean_skill_metadata(raw: dict[str, str]) -> dict[str, str]:
    """Strip keys and values as the form does. Reject metadata that the form would change when it is saved."""
    metadata = {key.strip(): value.strip() for key, value in raw.items()}
    if not is_metadata_editable(metadata):
        raise InvalidInput.on("metadata", METADATA_FORMAT_MESSAGE)
    return metadata


urlpatterns = SkillResource().urls()
