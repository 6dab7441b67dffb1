"""The questions asked about skills."""

from django.db.models import Count, Q, QuerySet

from personas.models import Workspace
from skills.models import Skill


def skills_of(workspace: Workspace) -> QuerySet[Skill]:
    users = Count("agent_links", filter=Q(agent_links__agent__archived_at=None), distinct=True)
    return Skill.objects.in_workspace(workspace).annotate(agent_count=users).order_by("name", "pk")
