"""Send pending builds to the workers, a few batches of each workspace at a time.

A worker that has finished a batch sends the next one of its workspace, behind the batches of others. So a
workspace with a thousand pending agents does not delay the few agents of another.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Min, Q
from django.utils import timezone

from prompts.models import BuildCause

# A batch that was sent but is not built after this time is sent again, because the broker may have lost it.
SEND_TIMEOUT = timedelta(seconds=20)


def send_pending_builds(workspace_id: int, send: Callable[[int, list[int]], bool]) -> None:
    """Send as many batches of pending agents as the workspace may have in the queue.

    `send` puts one batch into the queue and returns whether the broker accepted it.
    """
    agent_ids = list_agents_to_send(workspace_id, timezone.now())
    for start in range(0, len(agent_ids), settings.DRAMATIS_BUILD_BATCH):
        batch = agent_ids[start : start + settings.DRAMATIS_BUILD_BATCH]
        if not send(workspace_id, batch):
            return
        mark_builds_sent(workspace_id, batch)


def list_agents_to_send(workspace_id: int, now: datetime) -> list[int]:
    """List the pending agents that are not in the queue, oldest first, up to the limit of the workspace."""
    causes = BuildCause.objects.in_workspace(workspace_id)
    sent = causes.filter(sent_at__gte=now - SEND_TIMEOUT).order_by().values("agent").distinct().count()
    free = settings.DRAMATIS_WORKSPACE_JOBS * settings.DRAMATIS_BUILD_BATCH - sent
    if free <= 0:
        return []
    waiting = causes.filter(is_unsent(now)).order_by().values("agent").annotate(first=Min("pk"))
    return list(waiting.order_by("first").values_list("agent", flat=True)[:free])


def is_unsent(now: datetime) -> Q:
    return Q(sent_at=None) | Q(sent_at__lt=now - SEND_TIMEOUT)


def mark_builds_sent(workspace_id: int, agent_ids: Sequence[int]) -> None:
    causes = BuildCause.objects.in_workspace(workspace_id).filter(agent__in=agent_ids)
    causes.update(sent_at=timezone.now())
