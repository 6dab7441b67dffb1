"""A prompt assembled from a draft: nothing is stored, and nothing is served."""

from typing import Any

from django.urls import URLPattern

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import Answer, answered
from personas.api.schema import anything, choice, digest, listed, nullable, shape, slug, whole
from personas.api.views import endpoint
from personas.models import LAYOUTS, Agent
from personas.roles import Permission
from prompts.builds.compiler import Compiled, NotBuildable
from prompts.preview.draft_request import CHANGED, drafted
from prompts.preview.services import NotSpoken
from prompts.preview.services import preview as previewed
from prompts.provenance.api import STRETCH, stretches_told
from prompts.versions.api import BOUNDARY, SECTION, SEGMENT
from prompts.versions.serializers import TEXT

PREVIEW = shape(
    {
        "agent": TEXT,
        "channel": TEXT,
        "layout": TEXT,
        "digest": digest(description="That the version would have."),
        "text_digest": digest(),
        "text": TEXT,
        "characters": whole(),
        "tokens": whole(),
        "token_budget": nullable(whole()),
        "sections": listed(SECTION, most=1_000),
        "segments": {"type": "array", "items": SEGMENT},
        "stretches": {"type": "array", "items": STRETCH},
        "boundaries": {"type": "array", "items": BOUNDARY},
        "problems": {"type": "array", "items": TEXT},
        "lost": {"type": "array", "items": TEXT, "description": "Records the layout has no place for."},
        "cut": anything(description="By part, how many characters did not fit."),
        "omitted": anything(description="By part, why it is not there."),
    }
)
BODY = shape(
    {
        "agent": slug(),
        "channel": slug(),
        "layout": choice(LAYOUTS, description="Another one than the agent's."),
        "record": CHANGED,
    },
    required=["agent", "channel"],
)


def preview(call: Call) -> Answer:
    said = call.body
    agent = agent_named(call, said["agent"])
    refuse_channel(call, said["channel"])
    draft = drafted(call, said["record"], "/record").draft if "record" in said else None
    try:
        made = previewed(
            call.workspace, agent, said["channel"], draft=draft, layout=said.get("layout", "")
        ).made()
    except NotSpoken as error:
        raise ProblemError(invalid([FieldError(error.message, "/channel")])) from error
    except NotBuildable as error:
        raise ProblemError(invalid([FieldError(str(error))])) from error
    return answered(told(call, made))


def agent_named(call: Call, name: str) -> Agent:
    rows = Agent.objects.in_workspace(call.workspace).filter(slug=name, archived_at=None)
    agent = rows.first() if call.caller.may_touch(name) else None
    if agent is None:
        raise ProblemError(invalid([FieldError("There is no such agent here.", "/agent")]))
    return agent


def refuse_channel(call: Call, name: str) -> None:
    if name not in call.caller.key.scopes.get("channels", [name]):
        raise ProblemError(Problem(403, "out_of_scope", "This key is limited to other channels."))


def told(call: Call, made: Compiled) -> dict[str, Any]:
    prompt, gathered = made.prompt, made.gathered
    parts = prompt.report.parts
    return {
        "agent": gathered.agent.slug,
        "channel": gathered.channel.slug,
        "layout": gathered.layout,
        "digest": made.packed.digest,
        "text_digest": made.packed.text_digest,
        "text": prompt.text,
        "characters": len(prompt.text),
        "tokens": made.tokens,
        "token_budget": gathered.token_budget,
        "sections": [
            {"name": name, "characters": characters, "tokens": tokens}
            for name, (characters, tokens) in made.sizes.items()
        ],
        "segments": [
            {"section": one.section, "volatility": one.volatility, "slot": one.slot, "text": one.text}
            for one in prompt.segments
        ],
        "stretches": stretches_told(call.workspace, prompt.segments),
        "boundaries": [boundary._asdict() for boundary in prompt.report.boundaries],
        "problems": [*prompt.report.problems, *gathered.problems],
        "lost": list(prompt.report.lost),
        "cut": {part.name: part.cut for part in parts if part.cut},
        "omitted": {part.name: part.omitted for part in parts if part.omitted},
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "preview",
        "preview",
        post=Operation(
            preview,
            "Assemble a prompt with one record changed",
            permission=Permission.EDIT,
            budget="render",
            body=BODY,
            answer=PREVIEW,
            tag="impact",
            note="Nothing is stored, and no bot can get it.",
        ),
    ),
]
