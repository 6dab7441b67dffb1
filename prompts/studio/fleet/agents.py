"""Load one page of agents for the fleet page: search, filter, sort and count in one query."""

from collections.abc import Iterable
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Window
from django.db.models.functions import Coalesce

from personas.models import Agent, AgentChannel, Channel, Workspace
from personas.ui.counted_paginator import CountedPaginator
from prompts.models import PRODUCTION, BuildCause
from prompts.studio.fleet.filters import SORT_BY_CHANGE, SORT_BY_PROBLEMS, SORT_BY_TOKENS, FleetFilter
from prompts.studio.fleet.prompt_status import build_state_condition, list_prompts_with_status

# Small enough that a browser renders these agents with six channels each in well under a second.
AGENTS_PER_PAGE = 30
AGENT_COLUMNS = (
    *("slug", "name", "layout", "workspace_id", "updated_at"),
    *("identity__emoji", "identity__workspace_id", "parent__name", "parent__slug", "parent__workspace_id"),
)


def list_channels_in_use(workspace: int) -> list[Channel]:
    """List the channels of active agents: the columns of the matrix."""
    links = AgentChannel.objects.in_workspace(workspace).filter(
        channel=OuterRef("pk"), agent__archived_at=None
    )
    rows = Channel.objects.in_workspace(workspace).filter(Exists(links), archived_at=None)
    return list(rows.only("slug", "name", "workspace_id").order_by("name", "pk"))


def get_agent_page(workspace: Workspace, fleet_filter: FleetFilter, outdated: Iterable[int]) -> Page[Any]:
    rows = sort_agents(filter_agents(workspace, fleet_filter, outdated), fleet_filter.sort)
    rows = annotate_agents(workspace, rows)
    agents, number = slice_agent_page(rows, fleet_filter.page), fleet_filter.page
    if not agents and number > 1:
        # A page number beyond the end shows the last page.
        number = CountedPaginator([], AGENTS_PER_PAGE, rows.count()).num_pages
        agents = slice_agent_page(rows, number)
    return build_agent_page(agents, number)


def annotate_agents(workspace: Workspace | int, rows: QuerySet[Any]) -> QuerySet[Any]:
    annotated: QuerySet[Any] = rows.annotate(
        total=Window(Count("*")),
        is_waiting=Exists(BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("pk"))),
    )
    return annotated


def build_agent_page(agents: list[Any], number: int) -> Page[Any]:
    return Page(agents, number, CountedPaginator([], AGENTS_PER_PAGE, agents[0].total if agents else 0))


def slice_agent_page(rows: QuerySet[Any], number: int) -> list[Any]:
    return list(rows[(number - 1) * AGENTS_PER_PAGE : number * AGENTS_PER_PAGE])


def filter_agents(
    workspace: Workspace | int, fleet_filter: FleetFilter, outdated: Iterable[int]
) -> QuerySet[Agent]:
    rows = Agent.objects.in_workspace(workspace).filter(archived_at=None)
    rows = rows.select_related("identity", "parent").only(*AGENT_COLUMNS)
    if fleet_filter.search:
        fields = ("name", "slug", "description", "identity__display_name")
        rows = rows.filter(
            Q(*[(f"{field}__icontains", fleet_filter.search) for field in fields], _connector=Q.OR)
        )
    if fleet_filter.layout:
        rows = rows.filter(layout=fleet_filter.layout)
    if fleet_filter.channel or fleet_filter.state:
        prompts = list_prompts_with_status(workspace).filter(
            build_state_condition(fleet_filter.state, outdated)
        )
        prompts = prompts.filter(channel__slug=fleet_filter.channel) if fleet_filter.channel else prompts
        rows = rows.filter(pk__in=prompts.order_by().values("agent"))
    return rows


def sort_agents(rows: QuerySet[Agent], sort: str) -> QuerySet[Agent]:
    """Sort agents. The sort keys are aggregates over one join of the prompts, not a subquery per agent."""
    by_name, is_active = ("name", "pk"), Q(prompts__is_active=True)
    if sort == SORT_BY_CHANGE:
        last_built_at = Max("prompts__latest__created_at", filter=is_active)
        return rows.annotate(changed_at=Coalesce(last_built_at, "updated_at")).order_by(
            "-changed_at", *by_name
        )
    if sort == SORT_BY_TOKENS:
        max_tokens = Max(
            "prompts__labels__version__tokens", filter=is_active & Q(prompts__labels__name=PRODUCTION)
        )
        return rows.annotate(most=max_tokens).order_by(F("most").desc(nulls_last=True), *by_name)
    if sort == SORT_BY_PROBLEMS:
        failed = Count("prompts", filter=is_active & ~Q(prompts__problem=""))
        pinned = Count("prompts", filter=is_active & Q(prompts__is_pinned=True))
        return rows.annotate(wrong=failed, held=pinned).order_by("-wrong", "-held", *by_name)
    return rows.order_by(*by_name)
