"""REST resource for prompts: list them with labels and pending changes, and rebuild an agent's prompts."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import Count
from django.urls import URLPattern

from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import ANY, ARCHIVED_PARAM, PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    array_schema,
    boolean_schema,
    datetime_schema,
    digest_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import can_see_label, get_visible_agent, list_visible_prompts
from prompts.models import AgentPrompt, BuildCause, PromptLabel, PromptVersion
from prompts.publishing.builds.services import rebuild_agent
from prompts.publishing.versions.selectors import list_heavy_columns
from prompts.publishing.versions.serializers import LABEL_SCHEMA, TEXT_SCHEMA, label_json

LATEST_VERSION_SCHEMA = object_schema(
    {
        "version": integer_schema(1),
        "digest": digest_schema(),
        "layout": TEXT_SCHEMA,
        "characters": integer_schema(),
        "tokens": integer_schema(),
        "created_at": datetime_schema(),
    },
    title="LatestVersion",
)
PROMPT_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "layout": TEXT_SCHEMA,
        "is_archived": boolean_schema(
            description="Whether the agent or the channel is archived, or the agent has left the channel."
        ),
        "is_pinned": boolean_schema(
            description="Whether production stays on its version until someone releases again."
        ),
        "is_reviewed": boolean_schema(
            description="Whether production needs approvals. After a review was lifted, it does until "
            "production has the latest version."
        ),
        "latest": nullable_schema(LATEST_VERSION_SCHEMA),
        "labels": array_schema(LABEL_SCHEMA),
        "problem": nullable_schema(
            {"type": "string", "description": "Why the last build failed. Null for bot keys."}
        ),
        "pending": integer_schema(description="Number of changes that wait for a build."),
        "built_at": nullable_schema(datetime_schema()),
    },
    title="PromptSummary",
)
REBUILD_SCHEMA = object_schema(
    {
        "built": integer_schema(description="Number of prompts whose text changed."),
        "unchanged": integer_schema(),
        "failed": integer_schema(),
        "versions": array_schema(
            object_schema(
                {"channel": TEXT_SCHEMA, "version": integer_schema(1), "digest": digest_schema()},
                title="BuiltVersion",
            ),
            most=10_000,
        ),
        "problems": array_schema(
            object_schema({"channel": TEXT_SCHEMA, "problem": TEXT_SCHEMA}, title="BuildProblem"), most=10_000
        ),
    },
    title="RebuildResult",
)
LIST_PARAMETERS = {
    "agent": slug_schema(description="Only prompts of this agent."),
    "channel": slug_schema(description="Only prompts on this channel."),
    "archived": ARCHIVED_PARAM,
    **PAGINATION_PARAMS,
}


def index(call: ApiRequest) -> ApiResponse:
    rows = list_visible_prompts(call.caller)
    for name, field in (("agent", "agent__slug"), ("channel", "channel__slug")):
        if name in call.query:
            rows = rows.filter(**{field: call.query[name]})
    if (archived := call.query["archived"]) != ANY:
        rows = rows.filter(is_active=archived == "false")
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, prompts_json(call.caller, page.rows))


def prompts_json(caller: ApiClient, prompts: Sequence[AgentPrompt]) -> list[dict[str, Any]]:
    """Serialize prompts with two queries, independent of the number of prompts."""
    if not prompts:
        return []
    workspace, labels = prompts[0].workspace_id, defaultdict(list)
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts).order_by("name")
    for label in rows.select_related("version").defer(*list_heavy_columns("version")):
        if can_see_label(caller, label.name):
            labels[label.prompt_id].append(label_json(label))
    causes = BuildCause.objects.in_workspace(workspace).filter(agent__in={row.agent_id for row in prompts})
    pending = Counter(dict(causes.values_list("agent_id").annotate(count=Count("pk")).order_by()))
    summaries = [prompt_json(row, labels[row.pk], pending[row.agent_id]) for row in prompts]
    # Bots do not get problems, because a problem can quote the text that could not be built.
    return [one | {"problem": None} for one in summaries] if caller.is_bot else summaries


def prompt_json(prompt: AgentPrompt, labels: list[dict[str, Any]], pending: int) -> dict[str, Any]:
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "layout": prompt.agent.layout,
        "is_archived": not prompt.is_active,
        "is_pinned": prompt.is_pinned,
        "is_reviewed": prompt.is_reviewed,
        "latest": prompt.latest and latest_version_json(prompt.latest),
        "labels": labels,
        "problem": prompt.problem,
        "pending": pending if prompt.is_active else 0,
        "built_at": prompt.built_at and datetime_json(prompt.built_at),
    }


def latest_version_json(version: PromptVersion) -> dict[str, Any]:
    return {
        "version": version.number,
        "digest": version.digest,
        "layout": version.layout,
        "characters": version.characters,
        "tokens": version.tokens,
        "created_at": datetime_json(version.created_at),
    }


def rebuild_agent_prompts(call: ApiRequest, agent: str) -> ApiResponse:
    row = get_visible_agent(call, agent)
    result = rebuild_agent(row)
    prompts = AgentPrompt.objects.in_workspace(call.workspace).filter(agent=row, is_active=True)
    problems = prompts.exclude(problem="").values_list("channel__slug", "problem")
    versions = [
        {"channel": version.prompt.channel.slug, "version": version.number, "digest": version.digest}
        for version in result.versions
    ]
    body = {
        "built": len(result.versions),
        "unchanged": result.unchanged,
        "failed": result.failed,
        "versions": versions,
        "problems": [{"channel": channel, "problem": problem} for channel, problem in problems],
    }
    return json_response(body)


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompts",
        "prompts-list",
        get=Operation(
            index,
            "List prompts",
            operation_id="listPrompts",
            bots=True,
            touches=Touches.PROMPT,
            answer=page_schema(PROMPT_SCHEMA),
            query=LIST_PARAMETERS,
            tag="prompts",
        ),
    ),
    endpoint(
        "agents/<slug:agent>/prompts:rebuild",
        "prompts-rebuild",
        post=Operation(
            rebuild_agent_prompts,
            "Rebuild the prompts of an agent",
            operation_id="rebuildPrompts",
            permission=Permission.EDIT,
            touches=Touches.AGENT,
            budget="render",
            answer=REBUILD_SCHEMA,
            is_retryable=True,
            tag="prompts",
        ),
    ),
]
