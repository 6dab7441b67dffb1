"""The skills an agent has now, and the full instructions of one, for the tool that loads it."""

from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.operations import ApiRequest, Operation
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
from skills.api_helpers import (
    NOT_MODIFIED,
    TEXT_SCHEMA,
    agent_or_404,
    conditional_response,
    unpaginated_response,
)
from skills.library.selectors import SkillInstructions, SkillOrigin, get_skill_instructions

ORIGIN_SCHEMA = object_schema(
    {
        "kind": enum_schema(["skill", "file"], description="Written here, or found as a file."),
        "id": integer_schema(1),
        "revision": integer_schema(1),
        "digest": nullable_schema(
            TEXT_SCHEMA | {"description": "Of the file's content; null for a skill written here."}
        ),
    }
)
AGENT_SKILL_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "description": TEXT_SCHEMA,
        "disable_model_invocation": boolean_schema(),
        "origin": ORIGIN_SCHEMA,
        "is_used": boolean_schema(),
        "hidden_by": TEXT_SCHEMA | {"description": "Where the skill of this name lies that is used instead."},
        "dropped": array_schema(TEXT_SCHEMA, description="Why the agent's rules leave it out."),
    }
)
INSTRUCTIONS_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "name": TEXT_SCHEMA,
        "description": TEXT_SCHEMA,
        "body": TEXT_SCHEMA,
        "origin": ORIGIN_SCHEMA,
    }
)


def index(call: ApiRequest, agent: str) -> ApiResponse:
    given = get_effective_context(agent_or_404(call, agent, is_live=True))
    return unpaginated_response([agent_skill_json(one) for one in given.skills])


def retrieve_instructions(call: ApiRequest, agent: str, name: str) -> ApiResponse:
    found = get_skill_instructions(agent_or_404(call, agent, is_live=True), name)
    if found is None:
        raise Http404
    return conditional_response(call, {"agent": agent} | instructions_json(found))


def agent_skill_json(one: AgentSkill) -> dict[str, Any]:
    return {
        "name": one.name,
        "description": one.description,
        "disable_model_invocation": one.disable_model_invocation,
        "origin": origin_json(get_skill_origin(one)),
        "is_used": one.is_used,
        "hidden_by": one.hidden_by,
        "dropped": list(one.dropped),
    }


def get_skill_origin(one: AgentSkill) -> SkillOrigin:
    if one.skill is not None:
        return SkillOrigin("skill", one.skill.pk, one.skill.revision)
    used = one.file.in_force if one.file else None
    if used is None:
        raise ValueError("A skill in use is written here or in force.")
    return SkillOrigin("file", used.file_id, used.number, used.digest)


def origin_json(origin: SkillOrigin) -> dict[str, Any]:
    return {
        "kind": origin.kind,
        "id": origin.pk,
        "revision": origin.revision,
        "digest": origin.digest or None,
    }


def instructions_json(found: SkillInstructions) -> dict[str, Any]:
    return {
        "name": found.name,
        "description": found.description,
        "body": found.body,
        "origin": origin_json(found.origin),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "agents/<slug:agent>/skills",
        "agent-skills-list",
        get=Operation(
            index,
            "The skills an agent has now",
            bots=True,
            answer=page_schema(AGENT_SKILL_SCHEMA),
            tag="agents",
        ),
    ),
    endpoint(
        "agents/<slug:agent>/skills/<str:name>",
        "agent-skills-one",
        get=Operation(
            retrieve_instructions,
            "The full instructions of one of an agent's skills",
            bots=True,
            answer=INSTRUCTIONS_SCHEMA,
            extra_responses=[NOT_MODIFIED],
            note="For the tool that loads a skill. Send If-None-Match with the ETag of what you have.",
            tag="agents",
        ),
    ),
]
