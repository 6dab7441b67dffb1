"""The skills an agent has now, and the full instructions of one, for the tool that loads it."""

from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.responses import Answer
from personas.api.schema import choice, flag, listed, nullable, page_of, shape, whole
from personas.api.views import endpoint
from skills.agent_context.effective import SkillInUse, given_to
from skills.api_helpers import TEXT, UNCHANGED, agent_or_404, unless_seen, whole_list
from skills.library.selectors import Instructions, Origin, skill_instructions

ORIGIN = shape(
    {
        "kind": choice(["skill", "file"], description="Written here, or found as a file."),
        "id": whole(1),
        "revision": whole(1),
        "digest": nullable(TEXT | {"description": "Of the file's content; null for a skill written here."}),
    }
)
HELD = shape(
    {
        "name": TEXT,
        "description": TEXT,
        "disable_model_invocation": flag(),
        "origin": ORIGIN,
        "is_used": flag(),
        "hidden_by": TEXT | {"description": "Where the skill of this name lies that is used instead."},
        "dropped": listed(TEXT, description="Why the agent's rules leave it out."),
    }
)
FULL = shape({"agent": TEXT, "name": TEXT, "description": TEXT, "body": TEXT, "origin": ORIGIN})


def index(call: Call, agent: str) -> Answer:
    given = given_to(agent_or_404(call, agent, is_live=True))
    return whole_list([held_told(one) for one in given.skills])


def load(call: Call, agent: str, name: str) -> Answer:
    found = skill_instructions(agent_or_404(call, agent, is_live=True), name)
    if found is None:
        raise Http404
    return unless_seen(call, {"agent": agent} | instructions_told(found))


def held_told(one: SkillInUse) -> dict[str, Any]:
    return {
        "name": one.name,
        "description": one.description,
        "disable_model_invocation": one.disable_model_invocation,
        "origin": origin_told(origin_of(one)),
        "is_used": one.is_used,
        "hidden_by": one.hidden_by,
        "dropped": list(one.dropped),
    }


def origin_of(one: SkillInUse) -> Origin:
    if one.skill is not None:
        return Origin("skill", one.skill.pk, one.skill.revision)
    used = one.file.in_force if one.file else None
    if used is None:
        raise ValueError("A skill in use is written here or in force.")
    return Origin("file", used.file_id, used.number, used.digest)


def origin_told(origin: Origin) -> dict[str, Any]:
    return {
        "kind": origin.kind,
        "id": origin.pk,
        "revision": origin.revision,
        "digest": origin.digest or None,
    }


def instructions_told(found: Instructions) -> dict[str, Any]:
    return {
        "name": found.name,
        "description": found.description,
        "body": found.body,
        "origin": origin_told(found.origin),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "agents/<slug:agent>/skills",
        "agent-skills-list",
        get=Operation(index, "The skills an agent has now", bots=True, answer=page_of(HELD), tag="agents"),
    ),
    endpoint(
        "agents/<slug:agent>/skills/<str:name>",
        "agent-skills-one",
        get=Operation(
            load,
            "The full instructions of one of an agent's skills",
            bots=True,
            answer=FULL,
            others=[UNCHANGED],
            note="For the tool that loads a skill. Send If-None-Match with the ETag of what you have.",
            tag="agents",
        ),
    ),
]
