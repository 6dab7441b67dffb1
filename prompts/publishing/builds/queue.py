"""Send pending builds to the workers, a few batches of each person's workspaces at a time.

A worker that has finished a batch sends the next one of the same person, behind the batches of others. So a
workspace with a thousand pending agents, or fifty of one person, do not delay the few agents of another. The
workspaces of one person take turns.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import ceil

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from core.db.workspace_scope import all_workspaces, workspace_scope
from personas.limits.persons import list_workspaces_of_person
from prompts.models import BuildCause

# A batch that was sent but is not built after this time is sent again, because the broker may have lost it.
SEND_TIMEOUT = timedelta(seconds=20)
Batch = tuple[int, list[int]]


def send_pending_builds(workspace_id: int, send: Callable[[int, list[int]], bool]) -> None:
    """Send as many batches of pending agents as the person of the workspace may have in the queue.

    `send` puts one batch into the queue and returns whether the broker accepted it.
    """
    for batch_workspace_id, agent_ids in list_batches_to_send(workspace_id, timezone.now()):
        if not send(batch_workspace_id, agent_ids):
            return
        with workspace_scope(batch_workspace_id):
            mark_builds_sent(batch_workspace_id, agent_ids)


def list_batches_to_send(workspace_id: int, now: datetime) -> list[Batch]:
    """List batches of pending agents that are not in the queue, up to the limit of the person.

    Of the workspaces that count for the person, the one with the fewest jobs in the queue is next.
    """
    workspace_ids = list_workspaces_of_person(workspace_id)
    size: int = settings.DRAMATIS_BUILD_BATCH
    with all_workspaces():
        causes = BuildCause.unscoped.filter(workspace__in=workspace_ids).order_by()
        in_queue = causes.filter(sent_at__gte=now - SEND_TIMEOUT).values_list("workspace")
        sent: dict[int, int] = dict(in_queue.annotate(count=Count("agent", distinct=True)))
        waiting = causes.filter(is_unsent(now)).values_list("workspace").annotate(first=Min("pk"))
        first = dict(waiting)
    agents: dict[int, list[int]] = {}
    batches: list[Batch] = []

    def get_turn(pk: int) -> tuple[int, bool, int]:
        # With equal numbers of batches in the queue, the workspace that this call is for comes last.
        return ceil(sent.get(pk, 0) / size), pk == workspace_id, first[pk]

    while turn := min(first, key=get_turn, default=None):
        others = sum(ceil(count / size) for pk, count in sent.items() if pk != turn)
        free = (settings.DRAMATIS_WORKSPACE_JOBS - others) * size - sent.get(turn, 0)
        if free > 0 and turn not in agents:
            agents[turn] = list_waiting_agents(turn, now)
        batch = agents[turn][: min(free, size)] if free > 0 else []
        if not batch:
            # No agent of this workspace is waiting, or the queue limit is reached for it.
            del first[turn]
            continue
        agents[turn] = agents[turn][len(batch) :]
        sent[turn] = sent.get(turn, 0) + len(batch)
        batches.append((turn, batch))
    return batches


def list_waiting_agents(workspace_id: int, now: datetime) -> list[int]:
    """List the pending agents of a workspace that are not in the queue, oldest first."""
    limit = settings.DRAMATIS_WORKSPACE_JOBS * settings.DRAMATIS_BUILD_BATCH
    with workspace_scope(workspace_id):
        causes = BuildCause.objects.in_workspace(workspace_id).filter(is_unsent(now)).order_by()
        waiting = causes.values("agent").annotate(first=Min("pk")).order_by("first")
        return list(waiting.values_list("agent", flat=True)[:limit])


def is_unsent(now: datetime) -> Q:
    return Q(sent_at=None) | Q(sent_at__lt=now - SEND_TIMEOUT)


def mark_builds_sent(workspace_id: int, agent_ids: Sequence[int]) -> None:
    causes = BuildCause.objects.in_workspace(workspace_id).filter(agent__in=agent_ids)
    causes.update(sent_at=timezone.now())
