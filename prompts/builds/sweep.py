"""Finds work in the rows: causes and looks nobody took in, moments that came, an older compiler's work."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from personas.actors import SYSTEM_ACTOR
from prompts.builds.causes import COMPILER_CAUSE, add_build_causes
from prompts.builds.compiler import get_compiler_digest
from prompts.models import AgentPrompt, BuildCause, VerificationRun, VerificationState

# Younger causes are on their way through the broker, or being built by the request that made them.
GRACE_PERIOD = timedelta(seconds=10)
MAX_SWEEP_ROWS = 5_000


def list_waiting_agents(now: datetime) -> list[tuple[int, list[int]]]:
    """By workspace, the agents with a cause that has waited too long."""
    rows = BuildCause.unscoped.filter(at__lt=now - GRACE_PERIOD).order_by("pk")
    return group_by_workspace(rows.values_list("workspace_id", "agent_id")[:MAX_SWEEP_ROWS])


def list_due_agents(now: datetime) -> list[tuple[int, list[int]]]:
    """By workspace, the agents for which a memory has begun or ceased to hold."""
    rows = AgentPrompt.unscoped.filter(changes_at__lte=now, is_live=True).order_by("pk")
    return group_by_workspace(rows.values_list("workspace_id", "agent_id")[:MAX_SWEEP_ROWS])


@transaction.atomic
def request_compiler_rebuilds() -> list[tuple[int, list[int]]]:
    """Ask for what another compiler built, once after an upgrade; by workspace, the agents asked for.

    A build that gives the same words adds no version, and the last version goes on naming the old compiler:
    so each prompt notes for which one it was last asked for, and the cause says why.
    """
    mine = get_compiler_digest()
    rows = AgentPrompt.unscoped.filter(is_live=True).exclude(compiler=mine).order_by("pk")
    rows = rows.select_related("latest").only("workspace_id", "agent_id", "latest__compiler")
    # One that is being built at this moment is looked at the next time.
    held = list(rows.select_for_update(of=("self",), skip_locked=True)[:MAX_SWEEP_ROWS])
    AgentPrompt.unscoped.filter(pk__in=[row.pk for row in held]).update(compiler=mine)
    old = [row for row in held if row.latest is None or row.latest.compiler != mine]
    found = group_by_workspace((row.workspace_id, row.agent_id) for row in old)
    for workspace_id, agent_ids in found:
        add_build_causes(workspace_id, agent_ids, {"kind": COMPILER_CAUSE, "by": SYSTEM_ACTOR.label})
    return found


def list_queued_verifications(now: datetime) -> list[tuple[int, int]]:
    """By workspace, the looks at the record that no worker has begun."""
    rows = VerificationRun.unscoped.filter(state=VerificationState.QUEUED, asked_at__lt=now - GRACE_PERIOD)
    return list(rows.order_by("pk").values_list("workspace_id", "pk")[:MAX_SWEEP_ROWS])


def group_by_workspace(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    found: dict[int, set[int]] = defaultdict(set)
    for workspace_id, agent_id in pairs:
        found[workspace_id].add(agent_id)
    return [(workspace_id, sorted(ids)) for workspace_id, ids in found.items()]
