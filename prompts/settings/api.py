"""What holds for many prompts, level by level: the workspace, an agent, a channel."""

from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import refuse_unless
from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, ProblemError, pointer_to
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import Shape, choice, flag, listed, moment, nullable, prose, shape, slug, whole
from personas.api.views import endpoint
from personas.models import Agent, Channel, Identity, Named, Soul, UserProfile
from personas.roles import Permission
from prompts.api_lookup import found_agent, refuse_limited
from prompts.models import PromptSettings
from prompts.settings.models import ENTRIES, MODES
from prompts.settings.services import put_settings, settings_at
from prompts.versions.serializers import TEXT

LINKS: dict[str, type[Named]] = {"identity": Identity, "soul": Soul, "user_profile": UserProfile}
VALUES: dict[str, Shape] = {
    **{name: nullable(slug(description="By its slug.")) for name in LINKS},
    "mission": prose(20_000),
    "entry": nullable(choice(value for value, _ in ENTRIES)),
    "mode": nullable(choice(value for value, _ in MODES)),
    "native_tools": nullable(flag()),
    "total_characters": nullable(whole(500, 2**31 - 1)),
    "token_budget": nullable(whole(0, 2**31 - 1)),
}
# What a level leaves empty comes from the level before.
EMPTY: dict[str, Any] = dict.fromkeys(VALUES) | {"mission": "", "entry": "", "mode": ""}
LEVEL = shape(
    {
        "level": choice(["workspace", "agent", "channel"]),
        "agent": nullable(TEXT),
        "channel": nullable(TEXT),
        **VALUES,
        "revision": whole(description="0 while nothing was ever said here."),
        "updated_at": nullable(moment()),
        "etag": TEXT,
    }
)


def index(call: Call) -> Answer:
    """Every level that says something."""
    refuse_limited(call)
    rows = PromptSettings.objects.in_workspace(call.workspace)
    rows = rows.select_related("agent", "channel", *LINKS).order_by("agent__slug", "channel__slug", "pk")
    return answered({"data": [told(row, row.agent, row.channel) for row in rows]})


def of_workspace(call: Call) -> Answer:
    refuse_limited(call)
    return level(call)


def of_agent(call: Call, agent: str) -> Answer:
    return level(call, agent=found_agent(call, agent))


def of_channel(call: Call, channel: str) -> Answer:
    return level(call, channel=found_channel(call, channel))


def found_channel(call: Call, name: str) -> Channel:
    """A channel's settings hold for every agent that speaks there."""
    refuse_limited(call)
    row = Channel.objects.in_workspace(call.workspace).filter(slug=name).first()
    if row is None:
        raise Http404
    return row


def level(call: Call, agent: Agent | None = None, channel: Channel | None = None) -> Answer:
    """Told; or, where there is a body, written first."""
    row = settings_at(call.workspace, agent, channel)
    if call.body is not None:
        refuse_unless(etag_of(row), call.if_match)
        put_settings(
            call.workspace,
            values_of(call),
            expected=row.revision if row else 0,
            by=call.actor,
            agent=agent,
            channel=channel,
        )
        row = settings_at(call.workspace, agent, channel)
    return answered(told(row, agent, channel), ETag=etag_of(row))


def values_of(call: Call) -> dict[str, Any]:
    said: dict[str, Any] = {**EMPTY, **call.body}
    said |= {name: said[name] or "" for name in ("entry", "mode")}
    wrong = []
    for name, model in LINKS.items():
        if said[name] is None:
            continue
        rows = model.objects.in_workspace(call.workspace).filter(slug=said[name], archived_at=None)
        said[name] = rows.first()
        if said[name] is None:
            wrong.append(FieldError("There is no such record here.", pointer_to([name])))
    if wrong:
        raise ProblemError(invalid(wrong))
    return said


def etag_of(row: PromptSettings | None) -> str:
    return f'"{row.revision if row else 0}"'


def told(row: PromptSettings | None, agent: Agent | None, channel: Channel | None) -> dict[str, Any]:
    values = {name: value_told(row, name) for name in VALUES}
    return {
        "level": "agent" if agent else "channel" if channel else "workspace",
        "agent": agent and agent.slug,
        "channel": channel and channel.slug,
        **values,
        "revision": row.revision if row else 0,
        "updated_at": row and moment_told(row.updated_at),
        "etag": etag_of(row),
    }


def value_told(row: PromptSettings | None, name: str) -> Any:
    value = getattr(row, name) if row else EMPTY[name]
    if name in LINKS:
        return value and value.slug
    return value if name == "mission" or value != "" else None


def addresses(route: str, name: str, run: Any, where: str) -> URLPattern:
    common: dict[str, Any] = {"answer": LEVEL, "tag": "prompt-settings"}
    return endpoint(
        f"prompt-settings/{route}",
        f"prompt-settings-{name}",
        get=Operation(run, f"Settings of {where}", bots=True, **common),
        put=Operation(
            run,
            f"Say what holds for {where}",
            permission=Permission.EDIT,
            body=shape(VALUES, required=()),
            is_conditional=True,
            note='What is not named is left to the level before. If-Match is "0" the first time.',
            **common,
        ),
    )


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-settings",
        "prompt-settings-list",
        get=Operation(
            index,
            "List the levels that say something",
            bots=True,
            answer=shape({"data": listed(LEVEL, most=100_000)}),
            tag="prompt-settings",
        ),
    ),
    addresses("workspace", "workspace", of_workspace, "the workspace"),
    addresses("agents/<slug:agent>", "agent", of_agent, "an agent"),
    addresses("channels/<slug:channel>", "channel", of_channel, "a channel"),
]
