"""What is asked of the database for the prompts of some agents, as it is saved; to be read together."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from personas.models import (
    Agent,
    AgentChannel,
    AgentTool,
    Memory,
    MemoryState,
    Responsibility,
    Tool,
    Workspace,
)
from prompts.models import PromptSettings

# What each agent is joined with; whether it reads files at all is then known too.
WHOLE = ("identity", "soul", "user_profile", "context")
# What prompts are made of; the rest would be asked for when it is looked at.
LINE = ("id", "workspace_id", "revision", "agent_id", "text")

Questions = dict[str, "QuerySet[Any, Any]"]


def questions_about(workspace: Workspace | int, agents: Sequence[int]) -> Questions:
    """By what is loaded of them."""
    links = AgentTool.objects.in_workspace(workspace).filter(agent__in=agents)
    return {
        "agents": whole_agents(workspace).filter(pk__in=agents, archived_at=None).order_by("pk"),
        "channels": channel_links(workspace, agents),
        "tool_links": links.order_by("position", "pk"),
        # Each once, however many agents have it.
        "tools": Tool.objects.in_workspace(workspace).filter(pk__in=links.values("tool")),
        "duties": duties(workspace, agents),
        "memories": memories(workspace, agents),
        "settings": settings(workspace, agents),
    }


def whole_agents(workspace: Workspace | int) -> "QuerySet[Agent]":
    return Agent.objects.in_workspace(workspace).select_related(*WHOLE)


def channel_links(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[AgentChannel]":
    links = AgentChannel.objects.in_workspace(workspace).filter(agent__in=agents, channel__archived_at=None)
    return links.select_related("channel").order_by("position", "pk")


def duties(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Responsibility]":
    rows = Responsibility.objects.in_workspace(workspace).filter(agent__in=agents, archived_at=None)
    return rows.only(*LINE, "title", "position").order_by("position", "pk")


def memories(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Memory]":
    """Also shared ones; in no order, for they are the many."""
    rows = Memory.objects.in_workspace(workspace).filter(archived_at=None, state=MemoryState.ACTIVE)
    rows = rows.filter(Q(agent=None) | Q(agent__in=agents))
    return rows.only(*LINE, "valid_from", "valid_until").order_by()


def settings(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[PromptSettings]":
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None)
    rows = rows.filter(Q(agent=None) | Q(agent__in=agents))
    return rows.select_related("identity", "soul", "user_profile")
