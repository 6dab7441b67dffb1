"""Metrics that are too slow for a scrape: a periodic job computes and caches them."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Max, Q, Sum
from django.utils import timezone
from prometheus_client.core import Metric

from core.db.replica import read_from_replica
from personas.limits.daily_usage import get_utc_day
from personas.models import Agent, DailyStorage, Workspace
from personas.tenancy.lost_nodes import list_from_workspaces, query_workspaces
from project.metrics.exposition import build_counter, build_gauge
from prompts.models import AgentPrompt
from prompts.studio.fleet.bot_activity import OUTDATED_WINDOW, get_bot_activity

CACHE_KEY = "measured-figures"
CACHE_SECONDS = 3_600
# Well under the time limit of the job. Workspaces that are not reached in time are missing from the count.
TIME_LIMIT_SECONDS = 40.0
HELP_TEXTS = {
    "workspaces": "Workspaces.",
    "agents": "Active agents.",
    "prompts": "Active prompts (agents on channels).",
    "versions_total": "Versions ever built. It grows with every build that changed the text.",
    "prompts_unbuilt": "Prompts whose last build failed.",
    "call_bytes_today": "Bytes that the calls of all workspaces have stored today (UTC).",
    "call_quota_share": "Share of the daily quota that the workspace with the most call data has used.",
    "stale_bots": "Keys used in the last day whose last fetch is outdated.",
    "checkpoint_disk_free_bytes": "Free disk space for checkpoint files, where they are written.",
    "checkpoint_disk_size_bytes": "Size of that disk.",
}


def measure_metrics() -> dict[str, float]:
    """Compute the metrics in HELP_TEXTS over all workspaces, and cache them for the next scrapes."""
    sums = Counter[str]()
    for counts in query_workspaces(count_records):
        sums.update(counts)
    values: dict[str, float] = {
        "workspaces": Workspace.objects.filter(deleted_at=None).count(),
        **{name: sums[name] for name in ("agents", "prompts", "versions_total", "prompts_unbuilt")},
        "stale_bots": count_outdated_bots(),
        **measure_call_storage(),
    }
    disk = shutil.disk_usage(find_existing_folder(Path(settings.DRAMATIS_CHECKPOINT_DIR)))
    values |= {"checkpoint_disk_free_bytes": disk.free, "checkpoint_disk_size_bytes": disk.total}
    cache.set(
        CACHE_KEY, json.dumps({"at": timezone.now().isoformat(), "found": values}), timeout=CACHE_SECONDS
    )
    return values


def count_records() -> dict[str, int]:
    prompts = AgentPrompt.unscoped.filter(is_active=True).aggregate(
        all=Count("pk"), unbuilt=Count("pk", filter=~Q(problem=""))
    )
    return {
        "agents": Agent.unscoped.filter(archived_at=None).count(),
        "prompts": prompts["all"],
        "versions_total": AgentPrompt.unscoped.aggregate(all=Sum("last_number"))["all"] or 0,
        "prompts_unbuilt": prompts["unbuilt"],
    }


def find_existing_folder(path: Path) -> Path:
    """Return the folder or, if it does not exist yet, its closest existing parent."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def measure_call_storage() -> dict[str, float]:
    today = get_utc_day(timezone.now())
    sizes = query_workspaces(
        lambda: DailyStorage.unscoped.filter(day=today).aggregate(all=Sum("size"), most=Max("size"))
    )
    quota: int = settings.DRAMATIS_CALL_BYTES_PER_DAY
    most = max((size["most"] or 0 for size in sizes), default=0)
    return {
        "call_bytes_today": sum(size["all"] or 0 for size in sizes),
        "call_quota_share": most / quota if quota else 0.0,
    }


def count_outdated_bots() -> int:
    """Count outdated bots. Only workspaces with changes within OUTDATED_WINDOW can have outdated bots."""
    deadline, since = time.monotonic() + TIME_LIMIT_SECONDS, timezone.now() - OUTDATED_WINDOW
    count = 0
    for workspace_id in list_from_workspaces(partial(list_changed_workspaces, since)):
        if time.monotonic() > deadline:
            break
        count += read_from_replica(partial(count_workspace_outdated_bots, workspace_id))
    return count


def count_workspace_outdated_bots(workspace_id: int, alias: str) -> int:
    return get_bot_activity(workspace_id, using=alias).outdated_count


def list_changed_workspaces(since: datetime) -> list[int]:
    built = AgentPrompt.unscoped.filter(is_active=True, built_at__gte=since - timedelta(minutes=1))
    moved = AgentPrompt.unscoped.filter(is_active=True, labels__moved_at__gte=since)
    queries = (built.values_list("workspace_id", flat=True), moved.values_list("workspace_id", flat=True))
    return sorted({workspace_id for query in queries for workspace_id in query.distinct()})


def get_measured_metrics() -> list[Metric]:
    """Return the cached values of the last run and their age; an empty list if nothing is cached."""
    cached = cache.get(CACHE_KEY)
    if cached is None:
        return []
    measurement = json.loads(cached)
    values: Mapping[str, float] = measurement["found"]
    age = (timezone.now() - datetime.fromisoformat(measurement["at"])).total_seconds()
    families = [
        build_counter(name, HELP_TEXTS[name], [], [((), value)])
        if is_counter(name)
        else build_gauge(name, HELP_TEXTS[name], value)
        for name, value in values.items()
        if name in HELP_TEXTS
    ]
    return [
        *families,
        build_gauge("measured_age_seconds", "Seconds since the figures above were computed.", age),
    ]


def is_counter(name: str) -> bool:
    return name.endswith("_total")
