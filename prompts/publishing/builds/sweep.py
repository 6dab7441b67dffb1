"""Queries of the periodic sweep, which finds work that the task queue lost or that became due.

It finds agents with unprocessed build causes, queued verifications, agents with a memory that became valid or
expired, and prompts built by an older compiler.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Min, OuterRef

from personas.actors import SYSTEM_ACTOR
from personas.models import Erasure
from prompts.models import AgentPrompt, BuildCause, VerificationRun, VerificationStatus
from prompts.publishing.builds.causes import COMPILER_CAUSE, REBUILD_CAUSE, add_build_causes
from prompts.publishing.builds.compiler import get_compiler_digest
from prompts.publishing.builds.queue import is_unsent

# The sweep ignores younger causes and verifications: the request or a worker may be about to process them.
GRACE_PERIOD = timedelta(seconds=10)
MAX_SWEEP_ROWS = 5_000


def list_waiting_workspaces(now: datetime) -> list[int]:
    """List the workspaces with an unsent build cause older than the grace period, longest waiting first."""
    rows = BuildCause.unscoped.filter(is_unsent(now), at__lt=now - GRACE_PERIOD).order_by()
    waiting = rows.values("workspace").annotate(first=Min("pk")).order_by("first")
    return list(waiting.values_list("workspace", flat=True))


def request_due_rebuilds(now: datetime) -> list[tuple[int, list[int]]]:
    """Request rebuilds of the agents for which a memory has become valid or expired.

    Return the agents by workspace. Agents that already have a build cause are left out.
    """
    rows = AgentPrompt.unscoped.filter(changes_at__lte=now, is_active=True).order_by("pk")
    rows = rows.exclude(
        Exists(BuildCause.unscoped.filter(workspace=OuterRef("workspace"), agent=OuterRef("agent")))
    )
    agents = group_by_workspace(rows.values_list("workspace_id", "agent_id")[:MAX_SWEEP_ROWS])
    for workspace_id, agent_ids in agents:
        add_build_causes(workspace_id, agent_ids, {"kind": REBUILD_CAUSE, "by": SYSTEM_ACTOR.label})
    return agents


def request_compiler_rebuilds() -> list[tuple[int, list[int]]]:
    """Request rebuilds of prompts whose latest version was built by an older compiler.

    Return the agents by workspace. Each prompt is requested once per compiler: the prompt stores for which
    compiler it was last checked. The latest version cannot tell, because a rebuild with the same text adds
    no version. Each workspace has its own transaction and locks.
    """
    current = get_compiler_digest()
    unchecked = AgentPrompt.unscoped.filter(is_active=True).exclude(compiler=current).order_by("pk")
    pairs = unchecked.values_list("workspace_id", "pk")[:MAX_SWEEP_ROWS]
    agents = []
    for workspace_id, prompt_ids in group_by_workspace(pairs):
        if agent_ids := request_workspace_rebuilds(workspace_id, prompt_ids, current):
            agents.append((workspace_id, agent_ids))
    return agents


@transaction.atomic
def request_workspace_rebuilds(workspace_id: int, prompt_ids: Sequence[int], current: str) -> list[int]:
    """Mark these prompts as checked, and request rebuilds of the outdated ones. Return their agents."""
    prompts = AgentPrompt.objects.in_workspace(workspace_id)
    rows = prompts.filter(pk__in=prompt_ids, is_active=True).exclude(compiler=current)
    rows = rows.select_related("latest").only("workspace_id", "agent_id", "latest__compiler")
    # Prompts locked by a running build are left to the next sweep.
    locked = list(rows.order_by("pk").select_for_update(of=("self",), skip_locked=True))
    prompts.filter(pk__in=[row.pk for row in locked]).update(compiler=current)
    agent_ids = {row.agent_id for row in locked if row.latest is None or row.latest.compiler != current}
    if agent_ids:
        cause = {"kind": COMPILER_CAUSE, "by": SYSTEM_ACTOR.label}
        add_build_causes(workspace_id, sorted(agent_ids), cause)
    return sorted(agent_ids)


def list_queued_verifications(now: datetime) -> list[tuple[int, int]]:
    """List the verification runs that no worker has started, as pairs of workspace id and run id."""
    rows = VerificationRun.unscoped.filter(
        status=VerificationStatus.QUEUED, requested_at__lt=now - GRACE_PERIOD
    )
    return list(rows.order_by("pk").values_list("workspace_id", "pk")[:MAX_SWEEP_ROWS])


def list_open_erasures(now: datetime) -> list[tuple[int, int]]:
    """List the erasures that no worker has finished, as pairs of workspace id and erasure id."""
    rows = Erasure.unscoped.filter(rebuilding_since__lt=now - GRACE_PERIOD)
    return list(rows.order_by("pk").values_list("workspace_id", "pk")[:MAX_SWEEP_ROWS])


def group_by_workspace(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    agents: dict[int, set[int]] = defaultdict(set)
    for workspace_id, agent_id in pairs:
        agents[workspace_id].add(agent_id)
    return [(workspace_id, sorted(ids)) for workspace_id, ids in agents.items()]
