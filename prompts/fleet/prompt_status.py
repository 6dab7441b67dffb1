"""Prompts with how they stand: what production is at, what it may take, and which states that makes."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, cast

from django.db.models import (
    BooleanField,
    Case,
    F,
    FilteredRelation,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from personas.models import Workspace
from prompts.models import PRODUCTION, AgentPrompt, PromptSettings

STATE_ALL, STATE_AHEAD, STATE_PROBLEMS, STATE_OVER_BUDGET, STATE_OUTDATED, STATE_PINNED = (
    "",
    "ahead",
    "problems",
    "over",
    "stale",
    "held",
)


class PromptStatus(TypedDict):
    """One prompt, as the matrix shows it."""

    pk: int
    agent_id: int
    channel_id: int
    problem: str
    is_held: bool
    latest_number: int | None
    latest_tokens: int | None
    latest_at: datetime | None
    production_number: int | None
    production_tokens: int | None
    production_at: datetime | None
    budget: int | None
    is_match: bool


def list_prompts_with_status(workspace: Workspace | int) -> QuerySet[AgentPrompt]:
    """Live prompts, each with the version production is at and the nearest budget that is set."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True)
    rows = rows.annotate(at_production=FilteredRelation("labels", condition=Q(labels__name=PRODUCTION)))
    return rows.annotate(
        latest_number=F("latest__number"),
        latest_tokens=F("latest__tokens"),
        latest_at=F("latest__created_at"),
        production_id=F("at_production__version_id"),
        production_number=F("at_production__version__number"),
        production_tokens=F("at_production__version__tokens"),
        production_at=F("at_production__moved_at"),
        tokens=Coalesce("at_production__version__tokens", "latest__tokens"),
        budget=build_budget_subquery(workspace),
    )


def build_budget_subquery(workspace: Workspace | int) -> Coalesce:
    """In the order in which settings are inherited: the channel's, the agent's, the workspace's."""
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None)
    levels = (
        rows.filter(channel=OuterRef("channel_id")),
        rows.filter(agent=OuterRef("agent_id")),
        rows.filter(channel=None, agent=None),
    )
    return Coalesce(
        *[Subquery(level.values("token_budget")[:1]) for level in levels], output_field=IntegerField()
    )


def build_state_condition(state: str, stale: Iterable[int]) -> Q:
    """What makes a prompt one of a state; every one is of the empty state."""
    rules = {
        STATE_AHEAD: Q(latest__isnull=False) & (Q(production_id=None) | ~Q(production_id=F("latest_id"))),
        STATE_PROBLEMS: ~Q(problem=""),
        STATE_OVER_BUDGET: Q(tokens__gt=F("budget")),
        STATE_OUTDATED: Q(pk__in=list(stale)),
        STATE_PINNED: Q(is_held=True),
    }
    return rules.get(state, Q())


def list_prompt_statuses(
    workspace: Workspace | int, agent_ids: Iterable[int], rule: Q, channel: str = ""
) -> list[PromptStatus]:
    """The prompts of some agents; those that are not asked for are told apart, not left out."""
    rows = list_prompts_with_status(workspace).filter(agent__in=list(agent_ids))
    rows = rows.filter(channel__slug=channel) if channel else rows
    matches = Case(When(rule, then=True), default=False, output_field=BooleanField()) if rule else Value(True)
    found = rows.annotate(is_match=matches).values(*PromptStatus.__annotations__)
    return cast("list[PromptStatus]", list(found))
