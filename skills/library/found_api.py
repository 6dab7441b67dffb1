"""Skills that were found in sources: what they say, who gets them, and a copy to be written on here."""

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import URLPattern

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.pagination import FIELDS, PAGING, page_answered, page_of_rows
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import (
    Shape,
    choice,
    flag,
    line,
    listed,
    moment,
    nullable,
    page_of,
    shape,
    slug,
    whole,
)
from personas.api.views import endpoint
from personas.roles import Permission
from skills.api_helpers import TEXT, agents_named, refuse_limited, row_or_404
from skills.files.schema import chosen_agents, visible_to
from skills.files.services import hand_to_agents, require_trust
from skills.library.api import WARNINGS, Skills, taken, unfit
from skills.library.list import FOUND_STATES, found_description, found_state
from skills.library.selectors import folder_of, found_skills_of
from skills.library.services import NotASkill, copy_found_skill
from skills.models import ContextFile, Reach, Verdict
from skills.skill_format.parser import parse_skill

STATES = [state for state in FOUND_STATES if state]
TOLD: dict[str, Shape] = {
    "id": whole(1, description="The id of its context file."),
    "name": TEXT,
    "description": TEXT,
    "source": TEXT,
    "path": TEXT,
    "state": choice(STATES),
    "reach": choice(Reach.values),
    "agents": listed(TEXT, most=100_000, description="Whom it was handed to, when its reach is `chosen`."),
    "digest": nullable(TEXT | {"description": "Of the words in force; null while no prompt uses it."}),
    "changed_at": moment(),
}
FOUND = shape(TOLD, required=())
FULL = shape({**TOLD, "body": nullable(TEXT | {"description": "The instructions in force."})})
REACH = shape(
    {
        "reach": choice(Reach.values),
        "agents": listed(slug(), uniqueItems=True, description="For `chosen`: at least one."),
    },
    required=["reach"],
)
POLICY = shape({"is_needed": flag(description="Whether found skills wait for someone's trust.")})
WRITES: dict[str, Any] = {"permission": Permission.EDIT, "is_retryable": True, "tag": "found-skills"}


def index(call: Call) -> Answer:
    rows = visible(call)
    rows = rows.filter(FOUND_STATES[call.query.get("state", "")])
    if source := call.query.get("source"):
        rows = rows.filter(source__slug=source)
    if since := call.query.get("updated_since"):
        rows = rows.filter(changed_at__gte=since)
    if words := call.query.get("q", "").strip():
        said = Q(in_force__head__description__icontains=words)
        if not call.caller.is_bot:
            said |= Q(newest__head__description__icontains=words)
        rows = rows.filter(Q(name__icontains=words) | Q(path__icontains=words) | said)
    page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_answered(call, page, told_all(call, page.rows))


def read(call: Call, key: int) -> Answer:
    return full(call, found(call, key))


def hand_out(call: Call, key: int) -> Answer:
    refuse_limited(call)
    file = found(call, key)
    agents = agents_named(call, call.body.get("agents", []), "agents")
    if (call.body["reach"] == Reach.CHOSEN) != bool(agents):
        said = "Name at least one agent for `chosen`, and none for the others."
        raise ProblemError(invalid([FieldError(said, "/agents")]))
    hand_to_agents(file, call.body["reach"], agents, by=call.actor)
    return full(call, found(call, key))


def copy(call: Call, key: int) -> Answer:
    refuse_limited(call)
    try:
        made = copy_found_skill(found(call, key), by=call.actor)
    except NotASkill as error:
        reasons = [FieldError(unfit(problem).detail) for problem in error.problems]
        raise ProblemError(invalid(reasons)) from error
    return taken(Skills(), *made)


def policy(call: Call) -> Answer:
    return answered({"is_needed": call.workspace.skills_need_trust})


def decide(call: Call) -> Answer:
    refuse_limited(call)
    require_trust(call.workspace, call.body["is_needed"], by=call.actor)
    return answered(call.body)


# --- plumbing ------------------------------------------------------------------------------------------


def visible(call: Call) -> QuerySet[ContextFile]:
    return visible_to(call.caller, found_skills_of(call.workspace))


def found(call: Call, key: int) -> ContextFile:
    return row_or_404(visible(call).select_related("newest__content", "in_force__content"), key)


def full(call: Call, file: ContextFile) -> Answer:
    return answered({**told_all(call, [file])[0], "body": body_of(file)})


def told_all(call: Call, files: list[ContextFile]) -> list[dict[str, Any]]:
    chosen = chosen_agents(call.caller, files)
    return [told(file, chosen[file.pk]) for file in files]


def shown_description(file: ContextFile) -> str:
    """Words in quarantine are nobody's to read as if they were a skill's."""
    is_held = file.in_force is None and file.newest is not None and file.newest.verdict == Verdict.BLOCKED
    return "" if is_held else found_description(file)


def told(file: ContextFile, agents: list[str]) -> dict[str, Any]:
    head = file.in_force.head if file.in_force else {}
    return {
        "id": file.pk,
        "name": head.get("name", file.name),
        "description": shown_description(file),
        "source": file.source.slug,
        "path": file.path,
        "state": found_state(file),
        "reach": file.reach,
        "agents": agents,
        "digest": file.in_force.digest if file.in_force else None,
        "changed_at": moment_told(file.changed_at),
    }


def body_of(file: ContextFile) -> str | None:
    """Out of the words in force; what waits or is in quarantine is not handed out here."""
    data = file.in_force.content.data if file.in_force else None
    parsed = parse_skill(bytes(data), folder_name=folder_of(file.path)).skill if data is not None else None
    return parsed.body if parsed else None


urlpatterns: list[URLPattern] = [
    endpoint(
        "found-skills",
        "found-skills-list",
        get=Operation(
            index,
            "List skills that were found in sources",
            bots=True,
            answer=page_of(FOUND),
            query={
                "q": line(200, least=1, description="Words to look for."),
                "state": choice(STATES, description="Without it, all but the ignored ones."),
                "source": slug(description="Only those of this source."),
                "updated_since": moment(),
                "fields": FIELDS,
                **PAGING,
            },
            tag="found-skills",
        ),
    ),
    endpoint(
        "found-skills:trust",
        "found-skills-trust",
        get=Operation(policy, "Whether found skills wait for trust", answer=POLICY, tag="found-skills"),
        post=Operation(
            decide,
            "Decide whether found skills wait for trust",
            body=POLICY,
            answer=POLICY,
            **{**WRITES, "permission": Permission.MANAGE_SOURCES},
        ),
    ),
    endpoint(
        "found-skills/<int:key>",
        "found-skills-one",
        get=Operation(read, "Read a found skill", bots=True, answer=FULL, tag="found-skills"),
    ),
    endpoint(
        "found-skills/<int:key>:hand-out",
        "found-skills-hand-out",
        post=Operation(hand_out, "Say which agents a found skill is for", body=REACH, answer=FULL, **WRITES),
    ),
    endpoint(
        "found-skills/<int:key>:copy",
        "found-skills-copy",
        post=Operation(
            copy,
            "Make a found skill one that is written here",
            answer=shape({"skill": Skills().answer(), "warnings": WARNINGS}),
            status=201,
            **WRITES,
        ),
    ),
]
