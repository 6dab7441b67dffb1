"""Queries of prompt settings."""

from typing import Any

from django.db.models import IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from personas.models import Workspace
from prompts.models import PromptSettings


def build_effective_budget(workspace: Workspace | int) -> Coalesce:
    """Build the effective token budget of a prompt: the channel's, else the agent's, else the workspace's."""
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, token_budget__isnull=False)
    levels: list[dict[str, Any]] = [
        {"channel": OuterRef("channel_id")},
        {"agent": OuterRef("agent_id")},
        {"channel": None, "agent": None},
    ]
    budgets = [Subquery(rows.filter(**level).values("token_budget")[:1]) for level in levels]
    return Coalesce(*budgets, output_field=IntegerField())
