"""The jobs that keep prompts true to their parts; each does nothing the second time."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from personas.queueing import send
from prompts.services.building import rebuild_agents
from prompts.services.sweeping import agents_due, agents_waiting


@shared_task
def rebuild_prompts_job(workspace_id: int, agent_ids: list[int]) -> None:
    rebuild_agents(workspace_id, agent_ids)


@shared_task
def sweep_prompts_job() -> None:
    """Straight from the database: what a lost message missed, and what the clock alone has changed."""
    now = timezone.now()
    for workspace_id, agent_ids in [*agents_waiting(now), *agents_due(now)]:
        for start in range(0, len(agent_ids), settings.DRAMATIS_BUILD_BATCH):
            send(rebuild_prompts_job, workspace_id, agent_ids[start : start + settings.DRAMATIS_BUILD_BATCH])
