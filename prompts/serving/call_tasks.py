"""The task a call is bound to, as its slot takes it."""

from typing import Any

from django.db.models import Q

from personas.models import Task, Workspace


def task_facts(workspace: Workspace | int, agent: str, number: int) -> dict[str, Any] | None:
    """A task of the agent, or of nobody's; nothing where there is none of this number."""
    tasks = Task.objects.in_workspace(workspace).filter(archived_at=None, number=number)
    mine = tasks.filter(Q(agent=None) | Q(agent__slug=agent)).prefetch_related("steps").first()
    if mine is None:
        return None
    return {
        "number": mine.number,
        "title": mine.title,
        "description": mine.description,
        "status": mine.status,
        "steps": [{"title": step.title, "is_done": step.is_done} for step in mine.steps.all()],
    }
