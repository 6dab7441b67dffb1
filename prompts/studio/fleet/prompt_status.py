"""The status of prompts: production version, token budget, and the states the fleet can be filtered by."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, cast

from django.db.models import (
    BooleanField,
    Case,
    F,
    FilteredRelation,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from personas.models import Workspace
from prompts.models import PRODUCTION, AgentPrompt
from prompts.publishing.settings.selectors import build_effective_budget

STATE_ALL, STATE_AHEAD, STATE_PROBLEMS, STATE_OVER_BUDGET, STATE_OUTDATED, STATE_PINNED = (
    "",
    "ahead",
    "problems",
    "over",
    "stale",
    "held",
)


class PromptStatus(TypedDict):
    """The row of one prompt as selected for the matrix."""

    pk: int
    agent_id: int
    channel_id: int
    problem: str
    is_pinned: bool
    latest_number: int | None
    latest_tokens: int | None
    latest_at: datetime | None
    production_number: int | None
    production_tokens: int | None
    production_at: datetime | None
    budget: int | None
    is_match: bool


def list_prompts_with_status(workspace: Workspace | int) -> QuerySet[AgentPrompt]:
    """Query live prompts with their production version and effective token budget."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_active=True)
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
        budget=build_effective_budget(workspace),
    )


def build_state_condition(state: str, outdated: Iterable[int]) -> Q:
    """Return the condition for prompts in a state; the empty state matches all prompts.

    `outdated` has the ids of prompts with outdated bots.
    """
    conditions = {
        STATE_AHEAD: Q(latest__isnull=False) & (Q(production_id=None) | ~Q(production_id=F("latest_id"))),
        STATE_PROBLEMS: ~Q(problem=""),
        STATE_OVER_BUDGET: Q(tokens__gt=F("budget")),
        STATE_OUTDATED: Q(pk__in=list(outdated)),
        STATE_PINNED: Q(is_pinned=True),
    }
    return conditions.get(state, Q())


def list_prompt_statuses(
    workspace: Workspace | int, agent_ids: Iterable[int], condition: Q, channel: str = ""
) -> list[PromptStatus]:
    """List all prompts of these agents; `is_match` is false for those that do not match the condition."""
    rows = list_prompts_with_status(workspace).filter(agent__in=list(agent_ids))
    rows = rows.filter(channel__slug=channel) if channel else rows
    matches = (
        Case(When(condition, then=True), default=False, output_field=BooleanField())
        if condition
        else Value(True)
    )
    statuses = rows.annotate(is_match=matches).values(*PromptStatus.__annotations__)
    return cast("list[PromptStatus]", list(statuses))
