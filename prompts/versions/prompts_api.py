"""Prompts: each agent on each channel, where its labels stand, and what waits to be built."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import Count
from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import choice, digest, flag, listed, moment, nullable, page_of, shape, slug, whole
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import found_agent, refuse_limited, visible_prompts
from prompts.builds.services import rebuild_agent
from prompts.ledger.selectors import heavy
from prompts.models import AgentPrompt, BuildCause, PromptLabel, PromptVersion
from prompts.versions.serializers import LABEL, TEXT, label_told

LATEST = shape(
    {
        "number": whole(1),
        "digest": digest(),
        "layout": TEXT,
        "characters": whole(),
        "tokens": whole(),
        "created_at": moment(),
    }
)
PROMPT = shape(
    {
        "agent": TEXT,
        "channel": TEXT,
        "layout": TEXT,
        "is_live": flag(description="The agent is in use and speaks on the channel."),
        "is_held": flag(description="Production stays where it was put, until someone releases."),
        "latest": nullable(LATEST),
        "labels": listed(LABEL),
        "problem": {"type": "string", "description": "Why the last build left everything as it was."},
        "pending": whole(description="Changes that wait to be built in."),
        "built_at": nullable(moment()),
    }
)
REBUILT = shape(
    {
        "built": whole(description="Prompts with other words than before."),
        "unchanged": whole(),
        "failed": whole(),
        "versions": listed(shape({"channel": TEXT, "number": whole(1), "digest": digest()}), most=10_000),
        "problems": listed(shape({"channel": TEXT, "problem": TEXT}), most=10_000),
    }
)
LISTING = {
    "agent": slug(description="Only those of this agent."),
    "channel": slug(description="Only those on this channel."),
    "state": choice(
        ["live", "all"], default="live", description="Only those in use, or all there ever were."
    ),
    **PAGING,
}


def index(call: Call) -> Answer:
    rows = visible_prompts(call.caller)
    for name, field in (("agent", "agent__slug"), ("channel", "channel__slug")):
        if name in call.query:
            rows = rows.filter(**{field: call.query[name]})
    if call.query["state"] == "live":
        rows = rows.filter(is_live=True)
    page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_answered(call, page, told(page.rows))


def told(prompts: Sequence[AgentPrompt]) -> list[dict[str, Any]]:
    """Two queries for all of them."""
    if not prompts:
        return []
    workspace, labels = prompts[0].workspace_id, defaultdict(list)
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts).order_by("name")
    for label in rows.select_related("version").defer(*heavy("version")):
        labels[label.prompt_id].append(label_told(label))
    causes = BuildCause.objects.in_workspace(workspace).filter(agent__in={row.agent_id for row in prompts})
    waiting = Counter(dict(causes.values_list("agent_id").annotate(count=Count("pk")).order_by()))
    return [prompt_told(row, labels[row.pk], waiting[row.agent_id]) for row in prompts]


def prompt_told(prompt: AgentPrompt, labels: list[dict[str, Any]], pending: int) -> dict[str, Any]:
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "layout": prompt.agent.layout,
        "is_live": prompt.is_live,
        "is_held": prompt.is_held,
        "latest": prompt.latest and latest_told(prompt.latest),
        "labels": labels,
        "problem": prompt.problem,
        "pending": pending if prompt.is_live else 0,
        "built_at": prompt.built_at and moment_told(prompt.built_at),
    }


def latest_told(version: PromptVersion) -> dict[str, Any]:
    return {
        "number": version.number,
        "digest": version.digest,
        "layout": version.layout,
        "characters": version.characters,
        "tokens": version.tokens,
        "created_at": moment_told(version.created_at),
    }


def rebuild(call: Call, agent: str) -> Answer:
    row = found_agent(call, agent)
    if "channels" in call.caller.key.scopes:
        refuse_limited(call)
    built = rebuild_agent(row)
    prompts = AgentPrompt.objects.in_workspace(call.workspace).filter(agent=row, is_live=True)
    wrong = prompts.exclude(problem="").values_list("channel__slug", "problem")
    made = [
        {"channel": version.prompt.channel.slug, "number": version.number, "digest": version.digest}
        for version in built.versions
    ]
    said = {
        "built": len(built.versions),
        "unchanged": built.unchanged,
        "failed": built.failed,
        "versions": made,
        "problems": [{"channel": channel, "problem": problem} for channel, problem in wrong],
    }
    return answered(said)


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompts",
        "prompts-list",
        get=Operation(index, "List prompts", bots=True, answer=page_of(PROMPT), query=LISTING, tag="prompts"),
    ),
    endpoint(
        "agents/<slug:agent>/prompts:rebuild",
        "prompts-rebuild",
        post=Operation(
            rebuild,
            "Build all prompts of an agent now",
            permission=Permission.EDIT,
            budget="render",
            answer=REBUILT,
            is_retryable=True,
            tag="prompts",
            note="Equal words make no new version.",
        ),
    ),
]
