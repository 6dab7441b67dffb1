"""API for skills discovered in sources: list, read, assign to agents, copy, trust policy."""

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import URLPattern

from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import FIELDS_PARAM, PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.roles import Permission
from skills.agent_context.skill_validity import get_skill_validity
from skills.api_helpers import TEXT_SCHEMA, get_agents_by_slug, require_write_verb, row_or_404
from skills.files.schema import filter_visible_files, list_assigned_slugs
from skills.files.services import assign_skill_file, set_trust_requirement
from skills.library.api import WARNINGS_SCHEMA, SkillResource, import_response, problem_to_field_error
from skills.library.list import FOUND_SKILL_FILTERS, get_found_description, get_found_status
from skills.library.selectors import get_folder_name, list_found_skills
from skills.library.services import InvalidSkillFile, copy_found_skill
from skills.models import AssignedTo, ContextFile, Verdict
from skills.scanning import mask_secrets
from skills.skill_format.parser import parse_skill

STATUSES = [status for status in FOUND_SKILL_FILTERS if status]
FOUND_SKILL_PROPERTIES: dict[str, Schema] = {
    "id": integer_schema(1, description="The id of its context file."),
    "name": TEXT_SCHEMA,
    "description": TEXT_SCHEMA,
    "source": TEXT_SCHEMA,
    "path": TEXT_SCHEMA,
    "status": enum_schema(STATUSES, title="DiscoveredSkillStatus"),
    "scope": enum_schema(
        AssignedTo.values,
        description="Agents that read the folder it was found in, all agents, or the selected ones.",
        title="SkillScope",
    ),
    "agents": array_schema(
        TEXT_SCHEMA, most=100_000, description="The selected agents, if its scope is `selected`."
    ),
    "digest": nullable_schema(
        TEXT_SCHEMA | {"description": "Digest of the active revision. Null if no prompt uses it."}
    ),
    "changed_at": datetime_schema(),
}
FOUND_SKILL_SCHEMA = object_schema(FOUND_SKILL_PROPERTIES, title="DiscoveredSkill")
FOUND_SKILL_DETAIL_SCHEMA = object_schema(
    {
        **FOUND_SKILL_PROPERTIES,
        "next_step": TEXT_SCHEMA
        | {"description": "What is missing before prompts can offer it. Empty if nothing is."},
        "body": nullable_schema(
            TEXT_SCHEMA
            | {"description": "The instructions of the active revision; secrets are masked with •••."}
        ),
        "valid_for": array_schema(
            TEXT_SCHEMA,
            most=100_000,
            description="Agents that read it and whose harness accepts it.",
        ),
        "not_valid_for": array_schema(
            object_schema(
                {
                    "agent": TEXT_SCHEMA,
                    "rules": array_schema(TEXT_SCHEMA),
                    "reasons": array_schema(TEXT_SCHEMA, most=100_000),
                },
                title="SkillExclusion",
            ),
            most=100_000,
            description="Agents that read it but exclude it, with the reasons.",
        ),
    },
    title="DiscoveredSkillDetail",
)
NOT_COPIED_SCHEMA = array_schema(
    TEXT_SCHEMA,
    most=100_000,
    description="More files of the skill, relative to its folder. Skill records have none, so they "
    "are not copied. For a skill in a folder, the files that its instructions name.",
)
ASSIGNMENT_SCHEMA = object_schema(
    {
        "scope": enum_schema(AssignedTo.values, title="SkillScope"),
        "agents": array_schema(
            slug_schema(), uniqueItems=True, description=("Required for `selected`: at least one agent.")
        ),
    },
    required=["scope"],
    title="SkillAssignment",
    **{
        "if": {"properties": {"scope": {"const": "selected"}}},
        "then": {"properties": {"agents": {"minItems": 1}}, "required": ["agents"]},
        "else": {"properties": {"agents": {"maxItems": 0}}},
    },
)
TRUST_POLICY_SCHEMA = object_schema(
    {
        "is_required": boolean_schema(
            description=("Whether a discovered skill must be trusted before it is used.")
        )
    },
    title="TrustPolicy",
)
TRUST_CHANGE_SCHEMA = object_schema(
    {
        **TRUST_POLICY_SCHEMA["properties"],
        "in_use": enum_schema(
            ["keep", "remove"],
            description="When trust becomes required: keep the untrusted skills in use and trust "
            "their current content (the default), or remove them from prompts until "
            "someone trusts them.",
            title="UntrustedSkillAction",
        ),
    },
    required=["is_required"],
    title="TrustPolicyInput",
)
TRUST_RESULT_SCHEMA = object_schema(
    {
        **TRUST_POLICY_SCHEMA["properties"],
        "kept": array_schema(
            integer_schema(1), most=100_000, description="IDs of skills that were kept and are now trusted."
        ),
        "removed": array_schema(
            integer_schema(1), most=100_000, description="IDs of skills that prompts no longer list."
        ),
    },
    title="TrustPolicyResult",
)
WRITE_OPTIONS: dict[str, Any] = {
    "permission": Permission.EDIT,
    "touches": Touches.WORKSPACE,
    "is_retryable": True,
    "tag": "discovered-skills",
}


def index(call: ApiRequest) -> ApiResponse:
    rows = list_visible_skills(call)
    rows = rows.filter(FOUND_SKILL_FILTERS[call.query.get("status", "")])
    if source := call.query.get("source"):
        rows = rows.filter(source__slug=source)
    if since := call.query.get("updated_since"):
        rows = rows.filter(changed_at__gte=since)
    if search := call.query.get("q", "").strip():
        in_description = Q(active__head__description__icontains=search)
        if not call.caller.is_bot:
            in_description |= Q(latest__head__description__icontains=search)
        rows = rows.filter(Q(name__icontains=search) | Q(path__icontains=search) | in_description)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, found_skills_json(call, page.rows))


def retrieve_found_skill(call: ApiRequest, key: int) -> ApiResponse:
    return found_skill_response(call, found_skill_or_404(call, key))


def assign_found_skill(call: ApiRequest, key: int) -> ApiResponse:
    file = found_skill_or_404(call, key)
    agents = get_agents_by_slug(call, call.body.get("agents", []), "agents")
    assigned_to = call.body["scope"]
    if (assigned_to == AssignedTo.SELECTED) != bool(agents):
        message = "Name at least one agent for `selected`, and none for the other scopes."
        raise ProblemError(validation_problem([FieldError(message, "/agents")]))
    assign_skill_file(file, assigned_to, agents, by=call.actor)
    return found_skill_response(call, found_skill_or_404(call, key))


def copy_to_library(call: ApiRequest, key: int) -> ApiResponse:
    try:
        copied = copy_found_skill(found_skill_or_404(call, key), by=call.actor)
    except InvalidSkillFile as error:
        reasons = [FieldError(problem_to_field_error(problem).detail) for problem in error.problems]
        raise ProblemError(validation_problem(reasons)) from error
    return import_response(SkillResource(), copied.skill, copied.warnings, {"not_copied": copied.not_copied})


def retrieve_trust_policy(call: ApiRequest) -> ApiResponse:
    return json_response({"is_required": call.workspace.skills_need_trust})


def update_trust_policy(call: ApiRequest) -> ApiResponse:
    is_required, is_kept = call.body["is_required"], call.body.get("in_use", "keep") == "keep"
    if call.workspace.skills_need_trust and not is_required:
        require_write_verb(call)
    files = set_trust_requirement(call.workspace, is_required, by=call.actor, is_kept=is_kept)
    ids = [file.pk for file in files]
    return json_response(
        {"is_required": is_required, "kept": ids if is_kept else [], "removed": [] if is_kept else ids}
    )


# --- helpers -------------------------------------------------------------------------------------------


def list_visible_skills(call: ApiRequest) -> QuerySet[ContextFile]:
    return filter_visible_files(call.caller, list_found_skills(call.workspace))


def found_skill_or_404(call: ApiRequest, key: int) -> ContextFile:
    return row_or_404(list_visible_skills(call).select_related("latest__content", "active__content"), key)


def found_skill_response(call: ApiRequest, file: ContextFile) -> ApiResponse:
    return json_response(
        {
            **found_skills_json(call, [file])[0],
            "next_step": describe_next_step(file),
            "body": get_skill_body(file),
            **skill_validity_json(call, file),
        }
    )


def describe_next_step(file: ContextFile) -> str:
    """Say what is missing before prompts can offer the skill. Assigning it does not approve its text."""
    if get_found_status(file) != "pending":
        return ""
    return (
        "No prompt uses it until its text is approved: read it with GET "
        f"/api/v1/context-files/{file.pk}, then POST /api/v1/context-files/{file.pk}:approve with its digest."
    )


def skill_validity_json(call: ApiRequest, file: ContextFile) -> dict[str, Any]:
    """Serialize for which agents the active revision, otherwise the latest one, is valid.

    Agents that the API key may not access are left out.
    """
    revision = file.active or file.latest
    if revision is None or not revision.head:
        return {"valid_for": [], "not_valid_for": []}
    validity, can_access = get_skill_validity(file, revision), call.caller.can_access_agent
    return {
        "valid_for": [agent.slug for agent in validity.valid_agents if can_access(agent.slug)],
        "not_valid_for": [
            {
                "agent": rejection.agent.slug,
                "rules": list(rejection.harnesses),
                "reasons": list(rejection.reasons),
            }
            for rejection in validity.rejections
            if can_access(rejection.agent.slug)
        ],
    }


def found_skills_json(call: ApiRequest, files: list[ContextFile]) -> list[dict[str, Any]]:
    chosen = list_assigned_slugs(call.caller, files)
    return [found_skill_json(file, chosen[file.pk]) for file in files]


def get_visible_description(file: ContextFile) -> str:
    """Return the skill's description, or an empty string if it would come from a quarantined revision."""
    is_quarantined = (
        file.active is None and file.latest is not None and file.latest.verdict == Verdict.BLOCKED
    )
    return "" if is_quarantined else get_found_description(file)


def found_skill_json(file: ContextFile, agents: list[str]) -> dict[str, Any]:
    head = file.active.head if file.active else {}
    return {
        "id": file.pk,
        "name": head.get("name", file.name),
        "description": get_visible_description(file),
        "source": file.source.slug,
        "path": file.path,
        "status": get_found_status(file),
        "scope": file.assigned_to,
        "agents": agents,
        "digest": file.active.digest if file.active else None,
        "changed_at": datetime_json(file.changed_at),
    }


def get_skill_body(file: ContextFile) -> str | None:
    """Return the instructions in the active revision with their secrets masked, or None.

    Text that is quarantined or waits for approval is never returned.
    """
    data = file.active.content.data if file.active else None
    parsed = (
        parse_skill(bytes(data), folder_name=get_folder_name(file.path)).skill if data is not None else None
    )
    return mask_secrets(parsed.body) if parsed else None


urlpatterns: list[URLPattern] = [
    endpoint(
        "discovered-skills",
        "found-skills-list",
        get=Operation(
            index,
            "List skills discovered in sources",
            operation_id="listDiscoveredSkills",
            touches=Touches.AGENT,
            answer=page_schema(FOUND_SKILL_SCHEMA),
            query={
                "q": line_schema(200, least=1, description="Text to search for."),
                "status": enum_schema(
                    STATUSES,
                    description="Default: all except ignored skills.",
                    title="DiscoveredSkillStatus",
                ),
                "source": slug_schema(description="Only skills of this source."),
                "updated_since": datetime_schema(),
                "fields": FIELDS_PARAM,
                **PAGINATION_PARAMS,
            },
            tag="discovered-skills",
        ),
    ),
    endpoint(
        "discovered-skills:trust",
        "found-skills-trust",
        get=Operation(
            retrieve_trust_policy,
            "Get whether discovered skills need approval",
            operation_id="getDiscoveredSkillTrust",
            touches=Touches.WORKSPACE,
            answer=TRUST_POLICY_SCHEMA,
            tag="discovered-skills",
        ),
        post=Operation(
            update_trust_policy,
            "Set whether discovered skills need approval",
            operation_id="setDiscoveredSkillTrust",
            body=TRUST_CHANGE_SCHEMA,
            answer=TRUST_RESULT_SCHEMA,
            **{**WRITE_OPTIONS, "permission": Permission.MANAGE_SOURCES},
        ),
    ),
    endpoint(
        "discovered-skills/<int:id>",
        "found-skills-one",
        get=Operation(
            retrieve_found_skill,
            "Get a discovered skill",
            operation_id="getDiscoveredSkill",
            touches=Touches.AGENT,
            answer=FOUND_SKILL_DETAIL_SCHEMA,
            tag="discovered-skills",
        ),
    ),
    endpoint(
        "discovered-skills/<int:id>:assign",
        "found-skills-assign",
        post=Operation(
            assign_found_skill,
            "Assign a discovered skill to agents",
            operation_id="assignDiscoveredSkill",
            body=ASSIGNMENT_SCHEMA,
            answer=FOUND_SKILL_DETAIL_SCHEMA,
            **WRITE_OPTIONS,
        ),
    ),
    endpoint(
        "discovered-skills/<int:id>:copy",
        "found-skills-copy",
        post=Operation(
            copy_to_library,
            "Copy a discovered skill into a skill record",
            operation_id="copyDiscoveredSkill",
            answer=object_schema(
                {
                    "skill": SkillResource().response_schema(),
                    "warnings": WARNINGS_SCHEMA,
                    "not_copied": NOT_COPIED_SCHEMA,
                },
                title="SkillCopyResult",
            ),
            status=201,
            **WRITE_OPTIONS,
        ),
    ),
]
