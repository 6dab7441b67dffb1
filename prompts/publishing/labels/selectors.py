"""Queries for labels: the prompts that have a label, and the names of all labels."""

from typing import Any

from django.db.models import F, Q, QuerySet

from personas.models import Workspace
from prompts.models import LATEST, AgentPrompt, PromptLabel


def list_labelled_prompts(
    workspace: Workspace | int, name: str, query: str = ""
) -> "QuerySet[Any, dict[str, Any]]":
    """List the live prompts that have a label, as dicts, ordered by agent and channel name.

    “latest” has no PromptLabel rows: it is the latest version of every built prompt.
    """
    if name == LATEST:
        rows: QuerySet[Any] = AgentPrompt.objects.in_workspace(workspace).filter(latest__isnull=False)
        prompt, version, moved_at = "", "latest", "latest__created_at"
    else:
        rows = PromptLabel.objects.in_workspace(workspace).filter(name=name)
        prompt, version, moved_at = "prompt__", "version", "moved_at"
    rows = rows.filter(**{f"{prompt}is_active": True})
    if query:
        agent, channel = f"{prompt}agent__name__icontains", f"{prompt}channel__name__icontains"
        rows = rows.filter(Q(**{agent: query}) | Q(**{channel: query}))
    return rows.order_by(f"{prompt}agent__name", f"{prompt}channel__name", "pk").values(
        agent_name=F(f"{prompt}agent__name"),
        channel_name=F(f"{prompt}channel__name"),
        version_number=F(f"{version}__number"),
        version_tokens=F(f"{version}__tokens"),
        since=F(moved_at),
        prompt_key=F(f"{prompt}pk"),
    )


def list_label_names(workspace: Workspace) -> set[str]:
    """Return the names of all labels that are set on at least one prompt of the workspace."""
    rows = PromptLabel.objects.in_workspace(workspace).order_by("name")
    return set(rows.values_list("name", flat=True).distinct())
