"""Finds work in the rows themselves: causes and looks that nobody took in, and moments that have come."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from prompts.models import AgentPrompt, BuildCause, VerificationRun, VerificationState

# Younger causes are on their way through the broker, or being built by the request that made them.
PATIENCE = timedelta(seconds=10)
MOST = 5_000


def agents_waiting(now: datetime) -> list[tuple[int, list[int]]]:
    """By workspace, the agents with a cause that has waited too long."""
    rows = BuildCause.unscoped.filter(at__lt=now - PATIENCE).order_by("pk")
    return grouped(rows.values_list("workspace_id", "agent_id")[:MOST])


def agents_due(now: datetime) -> list[tuple[int, list[int]]]:
    """By workspace, the agents for which a memory has begun or ceased to hold."""
    rows = AgentPrompt.unscoped.filter(changes_at__lte=now, is_live=True).order_by("pk")
    return grouped(rows.values_list("workspace_id", "agent_id")[:MOST])


def looks_waiting(now: datetime) -> list[tuple[int, int]]:
    """By workspace, the looks at the record that no worker has begun."""
    rows = VerificationRun.unscoped.filter(state=VerificationState.QUEUED, asked_at__lt=now - PATIENCE)
    return list(rows.order_by("pk").values_list("workspace_id", "pk")[:MOST])


def grouped(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    found: dict[int, set[int]] = defaultdict(set)
    for workspace_id, agent_id in pairs:
        found[workspace_id].add(agent_id)
    return [(workspace_id, sorted(ids)) for workspace_id, ids in found.items()]
