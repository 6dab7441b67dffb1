"""Figures that take longer to find: a job looks for them now and then, and a scrape reads what it found."""

import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from django.core.cache import cache
from django.db.models import Count, Q, Sum
from django.utils import timezone
from prometheus_client.core import Metric

from core.db.replica import read_aside
from personas.models import Agent, Workspace
from project.metrics.exposition import counter, gauge
from prompts.fleet.bot_activity import REMEMBERED, bots_of
from prompts.models import AgentPrompt

KEY = "measured-figures"
KEPT = 3_600
# Well under the job's own limit; what was not looked at counts the next time.
LONGEST = 40.0
WORDS = {
    "workspaces": "Workspaces.",
    "agents": "Agents in use.",
    "prompts": "Agents on channels: a prompt each.",
    "versions_total": "Versions ever built; the growth is how many builds gave new words.",
    "prompts_unbuilt": "Prompts whose last build failed.",
    "stale_bots": "Keys of the last day that hold something else than they would get now.",
}


def measure() -> dict[str, float]:
    """Look over all workspaces and keep what was found for the next scrapes."""
    prompts = AgentPrompt.unscoped.filter(is_live=True).aggregate(
        all=Count("pk"), unbuilt=Count("pk", filter=~Q(problem=""))
    )
    found: dict[str, float] = {
        "workspaces": Workspace.objects.count(),
        "agents": Agent.unscoped.filter(archived_at=None).count(),
        "prompts": prompts["all"],
        "versions_total": AgentPrompt.unscoped.aggregate(all=Sum("last_number"))["all"] or 0,
        "prompts_unbuilt": prompts["unbuilt"],
        "stale_bots": stale_bots(),
    }
    cache.set(KEY, json.dumps({"at": timezone.now().isoformat(), "found": found}), timeout=KEPT)
    return found


def stale_bots() -> int:
    """Only where something has moved within the day can anybody be behind."""
    deadline, since = time.monotonic() + LONGEST, timezone.now() - REMEMBERED
    stale = 0
    for workspace_id in moved_workspaces(since):
        if time.monotonic() > deadline:
            break
        stale += read_aside(partial(stale_in, workspace_id))
    return stale


def stale_in(workspace_id: int, alias: str) -> int:
    return bots_of(workspace_id, using=alias).stale_count


def moved_workspaces(since: datetime) -> list[int]:
    rows = AgentPrompt.unscoped.filter(is_live=True, built_at__gte=since - timedelta(minutes=1))
    moved = AgentPrompt.unscoped.filter(is_live=True, labels__moved_at__gte=since)
    asked = (rows.values_list("workspace_id", flat=True), moved.values_list("workspace_id", flat=True))
    return sorted({workspace for found in asked for workspace in found.distinct()})


def measured_figures() -> list[Metric]:
    """What the last look found, and how old that is."""
    said = cache.get(KEY)
    if said is None:
        return []
    told = json.loads(said)
    found: Mapping[str, float] = told["found"]
    age = (timezone.now() - datetime.fromisoformat(told["at"])).total_seconds()
    figures = [
        counter(name, WORDS[name], [], [((), value)]) if is_sum(name) else gauge(name, WORDS[name], value)
        for name, value in found.items()
        if name in WORDS
    ]
    return [*figures, gauge("measured_age_seconds", "Since a job looked for the figures above.", age)]


def is_sum(name: str) -> bool:
    return name.endswith("_total")
