"""What a change would do to how many prompts; the same numbers as on the page, and nothing is stored."""

from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.problems import Problem, ProblemError
from personas.api.responses import Answer, answered
from personas.api.schema import listed, shape, whole
from personas.api.views import endpoint
from personas.models import Agent
from personas.roles import Permission
from prompts.preview.draft_request import CHANGED, Drafted, drafted
from prompts.preview.drafts import agents_touched
from prompts.preview.impact import Affected, Group, Impact, impact_of
from prompts.versions.diff_api import LINE, line_told
from prompts.versions.serializers import TEXT

COUNT = {"type": "integer"}
# Differences that are spelled out; the others are told with their prompts.
MOST_DRAWN = 20
AFFECTED = shape(
    {
        "agent": TEXT,
        "channel": TEXT,
        "tokens_before": whole(),
        "tokens_after": whole(),
        "kept_characters": whole(description="How far a provider's cache of the old words is good."),
        "rewritten_tokens": whole(),
        "over_budget": {"type": "string", "description": "Tokens of how many; empty within the budget."},
    }
)
CHANGE = shape(
    {
        "section": TEXT,
        "lines": {"type": "array", "items": LINE, "description": "Those that are removed and added."},
    }
)
GROUP = shape(
    {"changes": {"type": "array", "items": CHANGE}, "prompts": {"type": "array", "items": AFFECTED}},
    description="Prompts in which the same words change in the same way.",
)
IMPACT = shape(
    {
        "prompts": whole(description="How many would change."),
        "agents": whole(),
        "distinct_diffs": whole(),
        "unchanged": whole(),
        "token_delta": COUNT,
        "broken_prefixes": whole(description="Prompts whose cached beginning would end earlier."),
        "rewritten_tokens": whole(),
        "over_budget": whole(),
        "new": listed(shape({"agent": TEXT, "channel_name": TEXT}), most=100_000),
        "gone": listed(shape({"agent": TEXT, "channel": TEXT}), most=100_000),
        "problems": {"type": "array", "items": TEXT},
        "groups": {"type": "array", "items": GROUP},
    }
)


def impact(call: Call) -> Answer:
    if "channels" in call.caller.key.scopes:
        raise ProblemError(Problem(403, "out_of_scope", "This key is limited to some channels."))
    found = drafted(call, call.body, "")
    return answered(told(impact_of(call.workspace, found.draft, touched(call, found))))


def touched(call: Call, found: Drafted) -> "QuerySet[Agent, int]":
    """A key that is limited to some agents learns what would become of those."""
    agents = agents_touched(found.subject, found.draft)
    return agents if call.caller.agents is None else agents.filter(slug__in=call.caller.agents)


def told(found: Impact) -> dict[str, Any]:
    return {
        "prompts": len(found.affected),
        "agents": len(found.agents),
        "distinct_diffs": len(found.groups),
        "unchanged": found.unchanged,
        "token_delta": found.token_delta,
        "broken_prefixes": found.broken_prefixes,
        "rewritten_tokens": found.rewritten_tokens,
        "over_budget": len(found.over_budget),
        "new": [{"agent": agent.slug, "channel_name": channel} for agent, channel in found.new],
        "gone": [{"agent": one.agent.slug, "channel": one.channel.slug} for one in found.gone],
        "problems": found.problems,
        "groups": [group_told(group, is_drawn=at < MOST_DRAWN) for at, group in enumerate(found.groups)],
    }


def group_told(group: Group, *, is_drawn: bool) -> dict[str, Any]:
    changes = [
        {
            "section": change.section,
            "lines": [line_told(line) for line in change.lines if line.kind != "same"] if is_drawn else [],
        }
        for change in group.changes
    ]
    return {"changes": changes, "prompts": [affected_told(one) for one in group.affected]}


def affected_told(one: Affected) -> dict[str, Any]:
    return {
        "agent": one.agent.slug,
        "channel": one.prompt.channel.slug if one.prompt else one.channel,
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
        "kept_characters": one.kept_characters,
        "rewritten_tokens": one.rewritten_tokens,
        "over_budget": one.over_budget,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "impact",
        "impact",
        post=Operation(
            impact,
            "What a change would do to prompts",
            permission=Permission.EDIT,
            budget="render",
            body=CHANGED,
            answer=IMPACT,
            tag="impact",
            note="Nothing is stored.",
        ),
    ),
]
