"""What a change would do to how many prompts; the same numbers as on the page, and nothing is stored."""

from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.operations import ApiRequest, Operation
from personas.api.problems import Problem, ProblemError
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import array_schema, integer_schema, object_schema
from personas.api.views import endpoint
from personas.models import Agent
from personas.roles import Permission
from prompts.preview.draft_request import DRAFT_SCHEMA, RecordDraft, parse_draft
from prompts.preview.drafts import list_affected_agents
from prompts.preview.impact import AffectedPrompt, Impact, ImpactGroup, compute_impact
from prompts.versions.diff_api import DIFF_LINE_SCHEMA, diff_line_json
from prompts.versions.serializers import TEXT_SCHEMA

INTEGER_SCHEMA = {"type": "integer"}
# Differences that are spelled out; the others are told with their prompts.
MAX_DETAILED_GROUPS = 20
AFFECTED_PROMPT_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "tokens_before": integer_schema(),
        "tokens_after": integer_schema(),
        "kept_characters": integer_schema(description="How far a provider's cache of the old words is good."),
        "rewritten_tokens": integer_schema(),
        "over_budget": {"type": "string", "description": "Tokens of how many; empty within the budget."},
    }
)
SECTION_CHANGE_SCHEMA = object_schema(
    {
        "section": TEXT_SCHEMA,
        "lines": {
            "type": "array",
            "items": DIFF_LINE_SCHEMA,
            "description": "Those that are removed and added.",
        },
    }
)
IMPACT_GROUP_SCHEMA = object_schema(
    {
        "changes": {"type": "array", "items": SECTION_CHANGE_SCHEMA},
        "prompts": {"type": "array", "items": AFFECTED_PROMPT_SCHEMA},
    },
    description="Prompts in which the same words change in the same way.",
)
IMPACT_SCHEMA = object_schema(
    {
        "prompts": integer_schema(description="How many would change."),
        "agents": integer_schema(),
        "distinct_diffs": integer_schema(),
        "unchanged": integer_schema(),
        "token_delta": INTEGER_SCHEMA,
        "broken_prefixes": integer_schema(description="Prompts whose cached beginning would end earlier."),
        "rewritten_tokens": integer_schema(),
        "over_budget": integer_schema(),
        "new": array_schema(object_schema({"agent": TEXT_SCHEMA, "channel_name": TEXT_SCHEMA}), most=100_000),
        "gone": array_schema(object_schema({"agent": TEXT_SCHEMA, "channel": TEXT_SCHEMA}), most=100_000),
        "problems": {"type": "array", "items": TEXT_SCHEMA},
        "groups": {"type": "array", "items": IMPACT_GROUP_SCHEMA},
    }
)


def impact_endpoint(call: ApiRequest) -> ApiResponse:
    if "channels" in call.caller.key.scopes:
        raise ProblemError(Problem(403, "out_of_scope", "This key is limited to some channels."))
    found = parse_draft(call, call.body, "")
    return json_response(
        impact_json(compute_impact(call.workspace, found.draft, list_permitted_agents(call, found)))
    )


def list_permitted_agents(call: ApiRequest, found: RecordDraft) -> "QuerySet[Agent, int]":
    """A key that is limited to some agents learns what would become of those."""
    agents = list_affected_agents(found.subject, found.draft)
    return agents if call.caller.agents is None else agents.filter(slug__in=call.caller.agents)


def impact_json(found: Impact) -> dict[str, Any]:
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
        "groups": [
            impact_group_json(group, is_drawn=at < MAX_DETAILED_GROUPS)
            for at, group in enumerate(found.groups)
        ],
    }


def impact_group_json(group: ImpactGroup, *, is_drawn: bool) -> dict[str, Any]:
    changes = [
        {
            "section": change.section,
            "lines": [diff_line_json(line) for line in change.lines if line.kind != "same"]
            if is_drawn
            else [],
        }
        for change in group.changes
    ]
    return {"changes": changes, "prompts": [affected_prompt_json(one) for one in group.affected]}


def affected_prompt_json(one: AffectedPrompt) -> dict[str, Any]:
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
            impact_endpoint,
            "What a change would do to prompts",
            permission=Permission.EDIT,
            budget="render",
            body=DRAFT_SCHEMA,
            answer=IMPACT_SCHEMA,
            tag="impact",
            note="Nothing is stored.",
        ),
    ),
]
