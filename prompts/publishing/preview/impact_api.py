"""REST endpoint for the impact of an unsaved change: the same numbers as on the impact page. Read-only."""

from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import array_schema, enum_schema, integer_schema, object_schema
from personas.api.views import endpoint
from personas.models import Agent
from personas.roles import Permission
from prompts.publishing.preview.draft_request import DRAFT_SCHEMA, RecordDraft, parse_draft
from prompts.publishing.preview.drafts import list_affected_agents
from prompts.publishing.preview.impact import AffectedPrompt, Impact, ImpactGroup, compute_impact
from prompts.publishing.versions.diff_api import DIFF_LINE_SCHEMA, diff_line_json
from prompts.publishing.versions.serializers import TEXT_SCHEMA

INTEGER_SCHEMA = {"type": "integer"}
# Number of groups that are returned with a diff; further groups only list their prompts.
MAX_DETAILED_GROUPS = 20
AFFECTED_PROMPT_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "tokens_before": integer_schema(),
        "tokens_after": integer_schema(),
        "kept_characters": integer_schema(
            description=("How many characters of the provider's cache stay valid.")
        ),
        "rewritten_tokens": integer_schema(),
        "over_budget": {"type": "string", "description": "Tokens and budget. Empty if within the budget."},
    },
    title="AffectedPrompt",
)
SECTION_CHANGE_SCHEMA = object_schema(
    {
        "kind": enum_schema(
            ["section", "skill_file"],
            description="A section of the text, or the SKILL.md of a skill.",
            title="ChangeKind",
        ),
        "section": TEXT_SCHEMA | {"description": "The name of the section or of the skill."},
        "lines": {
            "type": "array",
            "items": DIFF_LINE_SCHEMA,
            "description": "The removed and added lines.",
        },
    },
    title="SectionChange",
)
IMPACT_GROUP_SCHEMA = object_schema(
    {
        "changes": {"type": "array", "items": SECTION_CHANGE_SCHEMA},
        "prompts": {"type": "array", "items": AFFECTED_PROMPT_SCHEMA},
    },
    description="Prompts with the same change.",
    title="ImpactGroup",
)
IMPACT_SCHEMA = object_schema(
    {
        "prompts": integer_schema(description="Number of prompts that would change."),
        "agents": integer_schema(),
        "distinct_diffs": integer_schema(),
        "unchanged": integer_schema(),
        "token_delta": INTEGER_SCHEMA,
        "invalidated_cache_prefixes": integer_schema(
            description="Number of prompts whose cached prefix would be shorter."
        ),
        "rewritten_tokens": integer_schema(),
        "over_budget": integer_schema(),
        "new": array_schema(
            object_schema({"agent": TEXT_SCHEMA, "channel_name": TEXT_SCHEMA}, title="NewPrompt"),
            most=100_000,
        ),
        "removed": array_schema(
            object_schema({"agent": TEXT_SCHEMA, "channel": TEXT_SCHEMA}, title="RemovedPrompt"), most=100_000
        ),
        "problems": {"type": "array", "items": TEXT_SCHEMA},
        "groups": {"type": "array", "items": IMPACT_GROUP_SCHEMA},
    },
    title="Impact",
)


def impact_endpoint(call: ApiRequest) -> ApiResponse:
    parsed = parse_draft(call, call.body, "")
    return json_response(
        impact_json(compute_impact(call.workspace, parsed.draft, list_permitted_agents(call, parsed)))
    )


def list_permitted_agents(call: ApiRequest, parsed: RecordDraft) -> "QuerySet[Agent, int]":
    """List the affected agents within the key's scope."""
    agents = list_affected_agents(parsed.subject, parsed.draft)
    return agents if call.caller.agents is None else agents.filter(slug__in=call.caller.agents)


def impact_json(impact: Impact) -> dict[str, Any]:
    return {
        "prompts": len(impact.affected),
        "agents": len(impact.agents),
        "distinct_diffs": len(impact.groups),
        "unchanged": impact.unchanged,
        "token_delta": impact.token_delta,
        "invalidated_cache_prefixes": impact.invalidated_cache_prefixes,
        "rewritten_tokens": impact.rewritten_tokens,
        "over_budget": len(impact.over_budget),
        "new": [{"agent": agent.slug, "channel_name": channel} for agent, channel in impact.new],
        "removed": [{"agent": prompt.agent.slug, "channel": prompt.channel.slug} for prompt in impact.gone],
        "problems": impact.problems,
        "groups": [
            impact_group_json(group, is_detailed=index < MAX_DETAILED_GROUPS)
            for index, group in enumerate(impact.groups)
        ],
    }


def impact_group_json(group: ImpactGroup, *, is_detailed: bool) -> dict[str, Any]:
    changes = [
        {
            "kind": change.kind,
            "section": change.section,
            "lines": [diff_line_json(line) for line in change.lines if line.kind != "same"]
            if is_detailed
            else [],
        }
        for change in group.changes
    ]
    return {"changes": changes, "prompts": [affected_prompt_json(prompt) for prompt in group.affected]}


def affected_prompt_json(affected: AffectedPrompt) -> dict[str, Any]:
    return {
        "agent": affected.agent.slug,
        "channel": affected.prompt.channel.slug if affected.prompt else affected.channel,
        "tokens_before": affected.tokens_before,
        "tokens_after": affected.tokens_after,
        "kept_characters": affected.kept_characters,
        "rewritten_tokens": affected.rewritten_tokens,
        "over_budget": affected.over_budget,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "impact",
        "impact",
        post=Operation(
            impact_endpoint,
            "Preview which prompts a change would alter",
            operation_id="previewImpact",
            permission=Permission.EDIT,
            # The figures cover all channels, so a key that is limited to channels or labels is refused.
            touches=Touches.AGENT,
            budget="render",
            body=DRAFT_SCHEMA,
            answer=IMPACT_SCHEMA,
            tag="impact",
        ),
    ),
]
