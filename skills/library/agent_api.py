"""API for the effective skills of an agent, as they are now: released or not."""

from typing import Any

from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import complete_list_response
from personas.api.responses import ApiResponse
from personas.api.schema import (
    array_schema,
    boolean_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from skills.agent_context.effective import AgentSkill, get_effective_context
from skills.api_helpers import TEXT_SCHEMA, agent_or_404
from skills.library.selectors import SkillOrigin

ORIGIN_SCHEMA = object_schema(
    {
        "kind": enum_schema(
            ["skill", "file"],
            description="Whether it is a skill record or a discovered skill.",
            title="SkillOriginKind",
        ),
        "id": integer_schema(1),
        "revision": integer_schema(1),
        "digest": nullable_schema(
            TEXT_SCHEMA | {"description": "Digest of the file content. Null for a skill record."}
        ),
    },
    title="SkillOrigin",
)
AGENT_SKILL_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "description": TEXT_SCHEMA,
        "disable_model_invocation": boolean_schema(),
        "origin": ORIGIN_SCHEMA,
        "is_used": boolean_schema(),
        "hidden_by": TEXT_SCHEMA | {"description": "Path of the skill with this name that is used instead."},
        "dropped": array_schema(TEXT_SCHEMA, description="Why the agent's rules exclude it."),
    },
    title="AgentSkill",
)


def index(call: ApiRequest, agent: str) -> ApiResponse:
    context = get_effective_context(agent_or_404(call, agent, is_active=True))
    return complete_list_response([agent_skill_json(skill) for skill in context.skills])


def agent_skill_json(skill: AgentSkill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "disable_model_invocation": skill.disable_model_invocation,
        "origin": origin_json(get_skill_origin(skill)),
        "is_used": skill.is_used,
        "hidden_by": skill.hidden_by,
        "dropped": list(skill.dropped),
    }


def get_skill_origin(agent_skill: AgentSkill) -> SkillOrigin:
    if agent_skill.skill is not None:
        return SkillOrigin("skill", agent_skill.skill.pk, agent_skill.skill.revision)
    used = agent_skill.file.active if agent_skill.file else None
    if used is None:
        raise ValueError("A skill in use is a record or has an active revision.")
    return SkillOrigin("file", used.file_id, used.number, used.digest)


def origin_json(origin: SkillOrigin) -> dict[str, Any]:
    return {
        "kind": origin.kind,
        "id": origin.pk,
        "revision": origin.revision,
        "digest": origin.digest or None,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "agents/<slug:agent>/skills",
        "agent-skills-list",
        get=Operation(
            index,
            "List the skills of an agent",
            operation_id="listAgentSkills",
            touches=Touches.AGENT,
            answer=page_schema(AGENT_SKILL_SCHEMA),
            tag="agents",
        ),
    ),
]
