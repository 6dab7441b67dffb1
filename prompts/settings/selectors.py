"""Queries of prompt settings."""

from typing import Any

from django.db.models import IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from personas.models import Workspace
from prompts.models import PromptSettings


def build_effective_budget(workspace: Workspace | int) -> Coalesce:
    """Build an SQL expression for the effective token budget of a prompt.

    It is the budget of the channel, else of the agent, else of the workspace.
    """
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, token_budget__isnull=False)
    levels: list[dict[str, Any]] = [
        {"channel": OuterRef("channel_id")},
        {"agent": OuterRef("agent_id")},
        {"channel": None, "agent": None},
    ]
    budgets = [Subquery(rows.filter(**level).values("token_budget")[:1]) for level in levels]
    return Coalesce(*budgets, output_field=IntegerField())
