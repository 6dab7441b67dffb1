"""Queries for the pages of one agent."""

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from personas.models import Agent, AgentTool, Memory, MemoryStatus, Responsibility, Workspace
from personas.selectors import list_memories

# The foreign keys to records that several agents can share.
SHARED_PARTS = ("identity", "soul", "user_profile")


def list_agents_with_parts(workspace: Workspace) -> QuerySet[Agent]:
    """Return all agents, joined with the linked records that the page header shows."""
    rows = Agent.objects.in_workspace(workspace)
    return rows.select_related("workspace", "identity", "soul", "user_profile", "parent")


def get_agent_with_sub_agents(workspace: Workspace, slug: str) -> tuple[Agent | None, list[Agent]]:
    """Load an agent and its active sub-agents in one query.

    Each agent is annotated with three counts: the active agents that use the same identity, the same soul
    and the same user profile.
    """
    shares = {f"{part}_users": count_agents_sharing(workspace, part) for part in SHARED_PARTS}
    rows = list_agents_with_parts(workspace).filter(Q(slug=slug) | Q(parent__slug=slug, archived_at=None))
    agents = list(rows.annotate(**shares).order_by("name", "pk"))
    agent = next((row for row in agents if row.slug == slug), None)
    return agent, [row for row in agents if row.slug != slug]


def count_agents_sharing(workspace: Workspace, part: str) -> Coalesce:
    """Build a subquery that counts the active agents with the same `part` (a name in SHARED_PARTS)."""
    agents = Agent.objects.in_workspace(workspace).filter(archived_at=None, **{part: OuterRef(part)})
    counted = agents.order_by().values(part).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted), 0)


def list_agent_responsibilities(agent: Agent) -> QuerySet[Responsibility]:
    """Return the active responsibilities of an agent, in the order in which its prompt lists them."""
    rows = Responsibility.objects.in_workspace(agent.workspace_id).filter(agent=agent, archived_at=None)
    return rows.order_by("position", "pk")


def list_agent_memories(agent: Agent) -> QuerySet[Memory]:
    """Return an agent's own memories, followed by the memories that all agents of the workspace share.

    Each of the two groups is sorted newest first.
    """
    rows = list_memories(agent.workspace).filter(Q(agent=agent) | Q(agent=None))
    return rows.order_by(F("agent").asc(nulls_last=True), "-created_at", "-pk")


def count_agent_memories(agent: Agent) -> dict[str, int]:
    """Count in one query: active memories of the agent, active shared memories, and proposed memories."""
    rows = Memory.objects.in_workspace(agent.workspace_id).filter(Q(agent=agent) | Q(agent=None))
    active, own = Q(status=MemoryStatus.ACTIVE), Q(agent=agent)
    counts: dict[str, int] = rows.aggregate(
        own=Count("pk", filter=active & own),
        shared=Count("pk", filter=active & ~own),
        proposed=Count("pk", filter=Q(status=MemoryStatus.PROPOSED)),
    )
    return counts


def list_agent_tools(agent: Agent) -> QuerySet[AgentTool]:
    """Return an agent's tools by position. Each is annotated with the number of active agents that use it."""
    links = AgentTool.objects.in_workspace(agent.workspace_id)
    others = links.filter(tool=OuterRef("tool"), agent__archived_at=None).order_by().values("tool")
    counted = others.annotate(number=Count("pk")).values("number")
    own_links = links.filter(agent=agent).select_related("tool")
    return own_links.annotate(users=Coalesce(Subquery(counted), 0)).order_by("position", "pk")
