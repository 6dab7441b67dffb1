"""Queries for records, for pages and the API. Each query is limited to one workspace."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Prefetch, Q, QuerySet

from personas.models import (
    Agent,
    AgentChannel,
    AgentTool,
    AuditEvent,
    Channel,
    Identity,
    Invitation,
    Membership,
    Memory,
    Record,
    Responsibility,
    Revision,
    Soul,
    Task,
    Tool,
    UserProfile,
    Workspace,
)

LIVE_AGENT_COUNT = Count("agents", filter=Q(agents__archived_at=None), distinct=True)
LIVE_LINK_COUNT = Count("agent_links", filter=Q(agent_links__agent__archived_at=None), distinct=True)


def list_agents(workspace: Workspace | int) -> QuerySet[Agent]:
    """Return the agents of a workspace, with the related rows that pages and the API display."""
    tools = AgentTool.objects.in_workspace(workspace).select_related("tool")
    channels = AgentChannel.objects.in_workspace(workspace).select_related("channel")
    rows = Agent.objects.in_workspace(workspace).select_related("identity", "soul", "user_profile", "parent")
    return rows.prefetch_related(
        Prefetch("tool_links", queryset=tools), Prefetch("channel_links", queryset=channels)
    ).order_by("name", "pk")


def list_identities(workspace: Workspace | int) -> QuerySet[Identity]:
    rows = Identity.objects.in_workspace(workspace)
    return rows.annotate(agent_count=LIVE_AGENT_COUNT).order_by("name", "pk")


def list_souls(workspace: Workspace | int) -> QuerySet[Soul]:
    return Soul.objects.in_workspace(workspace).annotate(agent_count=LIVE_AGENT_COUNT).order_by("name", "pk")


def list_user_profiles(workspace: Workspace | int) -> QuerySet[UserProfile]:
    rows = UserProfile.objects.in_workspace(workspace)
    return rows.annotate(agent_count=LIVE_AGENT_COUNT).order_by("name", "pk")


def list_channels(workspace: Workspace | int) -> QuerySet[Channel]:
    return (
        Channel.objects.in_workspace(workspace).annotate(agent_count=LIVE_LINK_COUNT).order_by("name", "pk")
    )


def list_tools(workspace: Workspace | int) -> QuerySet[Tool]:
    rows = Tool.objects.in_workspace(workspace).select_related("agent")
    return rows.annotate(agent_count=LIVE_LINK_COUNT).order_by("name", "pk")


def list_memories(workspace: Workspace | int) -> QuerySet[Memory]:
    """Return the memories of a workspace. The newest come first, because they may need a review."""
    rows = Memory.objects.in_workspace(workspace).select_related("agent", "author", "superseded_by")
    return rows.order_by("-created_at", "-pk")


def list_responsibilities(workspace: Workspace | int) -> QuerySet[Responsibility]:
    rows = Responsibility.objects.in_workspace(workspace).select_related("agent")
    return rows.order_by("agent__name", "agent_id", "position", "pk")


def list_tasks(workspace: Workspace | int) -> QuerySet[Task]:
    rows = Task.objects.in_workspace(workspace).select_related("agent").prefetch_related("steps")
    return rows.order_by("-number")


def list_members(workspace: Workspace) -> QuerySet[Membership]:
    return Membership.objects.in_workspace(workspace).select_related("user").order_by("user__email")


def list_open_invitations(workspace: Workspace) -> QuerySet[Invitation]:
    rows = Invitation.objects.in_workspace(workspace).filter(accepted_at=None, withdrawn_at=None)
    return rows.select_related("invited_by").order_by("-created_at", "-pk")


def list_audit_events(workspace: Workspace) -> QuerySet[AuditEvent]:
    return AuditEvent.objects.in_workspace(workspace).order_by("-at", "-pk")


def list_revisions(record: Record) -> QuerySet[Revision]:
    rows = Revision.objects.in_workspace(record.workspace_id).filter(kind=record.kind, object_id=record.pk)
    return rows.order_by("-number")


def get_first_snapshots(records: Sequence[Record], authors: Sequence[str]) -> dict[int, dict[str, Any]]:
    """Return the content of records at their creation, by id: of those that one of these authors created."""
    if not records:
        return {}
    rows = Revision.objects.in_workspace(records[0].workspace_id).filter(
        kind=records[0].kind, object_id__in=[record.pk for record in records], number=1
    )
    return dict(rows.filter(author_label__in=authors).values_list("object_id", "data"))


def list_agents_using(record: Record) -> QuerySet[Agent]:
    """Return the agents whose prompts contain this record, without archived agents."""
    rows = Agent.objects.in_workspace(record.workspace_id)
    return rows.filter(pk__in=record.agent_ids(), archived_at=None).order_by("name", "pk")
