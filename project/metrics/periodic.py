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

from core.db.replica import read_from_replica
from personas.models import Agent, Workspace
from project.metrics.exposition import build_counter, build_gauge
from prompts.fleet.bot_activity import OUTDATED_WINDOW, get_bot_activity
from prompts.models import AgentPrompt

CACHE_KEY = "measured-figures"
CACHE_SECONDS = 3_600
# Well under the job's own limit; what was not looked at counts the next time.
TIME_LIMIT_SECONDS = 40.0
HELP_TEXTS = {
    "workspaces": "Workspaces.",
    "agents": "Agents in use.",
    "prompts": "Agents on channels: a prompt each.",
    "versions_total": "Versions ever built; the growth is how many builds gave new words.",
    "prompts_unbuilt": "Prompts whose last build failed.",
    "stale_bots": "Keys of the last day that hold something else than they would get now.",
}


def measure_metrics() -> dict[str, float]:
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
        "stale_bots": count_outdated_bots(),
    }
    cache.set(
        CACHE_KEY, json.dumps({"at": timezone.now().isoformat(), "found": found}), timeout=CACHE_SECONDS
    )
    return found


def count_outdated_bots() -> int:
    """Only where something has moved within the day can anybody be behind."""
    deadline, since = time.monotonic() + TIME_LIMIT_SECONDS, timezone.now() - OUTDATED_WINDOW
    stale = 0
    for workspace_id in list_changed_workspaces(since):
        if time.monotonic() > deadline:
            break
        stale += read_from_replica(partial(count_workspace_outdated_bots, workspace_id))
    return stale


def count_workspace_outdated_bots(workspace_id: int, alias: str) -> int:
    return get_bot_activity(workspace_id, using=alias).stale_count


def list_changed_workspaces(since: datetime) -> list[int]:
    rows = AgentPrompt.unscoped.filter(is_live=True, built_at__gte=since - timedelta(minutes=1))
    moved = AgentPrompt.unscoped.filter(is_live=True, labels__moved_at__gte=since)
    asked = (rows.values_list("workspace_id", flat=True), moved.values_list("workspace_id", flat=True))
    return sorted({workspace for found in asked for workspace in found.distinct()})


def get_measured_metrics() -> list[Metric]:
    """What the last look found, and how old that is."""
    said = cache.get(CACHE_KEY)
    if said is None:
        return []
    told = json.loads(said)
    found: Mapping[str, float] = told["found"]
    age = (timezone.now() - datetime.fromisoformat(told["at"])).total_seconds()
    figures = [
        build_counter(name, HELP_TEXTS[name], [], [((), value)])
        if is_counter(name)
        else build_gauge(name, HELP_TEXTS[name], value)
        for name, value in found.items()
        if name in HELP_TEXTS
    ]
    return [*figures, build_gauge("measured_age_seconds", "Since a job looked for the figures above.", age)]


def is_counter(name: str) -> bool:
    return name.endswith("_total")
