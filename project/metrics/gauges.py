"""Gauges of database, Redis and disk. They are read at each scrape, so every query must use an index."""

import math
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client.core import Metric

from core.db.citus_nodes import list_node_states
from personas.tenancy.lost_nodes import list_unreachable_workspaces, query_workspaces
from project.journal.services import get_journal_status
from project.metrics.exposition import build_gauge, build_labelled_gauge
from project.metrics.periodic import find_existing_folder
from project.redis_client import connect_redis
from project.tasks import HEARTBEAT_KEY
from prompts.evidence.integrity.lag import list_workspace_lags
from prompts.models import BuildCause, Checkpoint, LedgerBlock, LedgerEntry
from skills.models import RefreshRun, RunStatus

log = structlog.get_logger(__name__)

UNACKED_KEY = "unacked"
MetricCollector = Callable[[], Sequence[Metric]]


def collect_gauges() -> list[Metric]:
    """Return all gauges. If the database or Redis fails, it is reported as down, without its gauges."""
    families: list[Metric] = [*collect_disk_usage()]
    states: dict[str, float] = {}
    for part, collectors in COLLECTORS.items():
        part_families = run_collectors(part, collectors)
        states[part] = part_families is not None
        families += part_families or []
    return [build_labelled_gauge("up", "Whether a component responds.", "part", states), *families]


def run_collectors(part: str, collectors: Sequence[MetricCollector]) -> list[Metric] | None:
    try:
        return [family for collect in collectors for family in collect()]
    # Any error means that the part is down. The reason is logged but not returned, because it may contain
    # host names.
    except Exception as error:  # noqa: BLE001
        log.warning("metrics_collection_failed", part=part, error=type(error).__name__, reason=str(error))
        return None


# --- database ------------------------------------------------------------------------------------------


def ping_database() -> Sequence[Metric]:
    """Check the connection with a query that needs no table. Return no metrics."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return []


def collect_build_queue() -> Sequence[Metric]:
    waiting = query_workspaces(
        lambda: BuildCause.unscoped.aggregate(agents=Count("agent", distinct=True), oldest=Min("at"))
    )
    return [
        build_gauge(
            "build_queue_agents",
            "Number of agents whose prompts wait for a build.",
            sum(each["agents"] for each in waiting),
        ),
        build_gauge(
            "build_queue_age_seconds",
            "Waiting time of the oldest.",
            max((get_age_seconds(each["oldest"]) for each in waiting), default=0.0),
        ),
    ]


def collect_refresh_queue() -> Sequence[Metric]:
    waiting = query_workspaces(
        lambda: (
            RefreshRun.unscoped.filter(status=RunStatus.QUEUED)
            .order_by()
            .aggregate(runs=Count("pk"), oldest=Min("requested_at"))
        )
    )
    return [
        build_gauge(
            "refresh_queue_runs",
            "Refresh runs waiting for a worker.",
            sum(each["runs"] for each in waiting),
        ),
        build_gauge(
            "refresh_queue_age_seconds",
            "Waiting time of the oldest.",
            max((get_age_seconds(each["oldest"]) for each in waiting), default=0.0),
        ),
    ]


def collect_record_positions() -> Sequence[Metric]:
    """Return the ids and ages of the newest ledger row, ledger block and checkpoint.

    Ids are used instead of row counts, because counting millions of rows is too slow for a scrape.
    """
    entry = find_newest(lambda: LedgerEntry.unscoped.order_by("-pk").values_list("pk", "pk").first())
    block = find_newest(lambda: LedgerBlock.unscoped.order_by("-pk").values_list("last_id", "at").first())
    checkpoint = find_newest(lambda: Checkpoint.unscoped.order_by("-pk").values_list("pk", "at").first())
    return [
        build_gauge("ledger_position", "Id of the newest ledger row.", entry[0] if entry else 0),
        build_gauge(
            "ledger_sealed_position", "Id of the last row in the newest block.", block[0] if block else 0
        ),
        build_gauge(
            "ledger_block_age_seconds",
            "Seconds since the newest block.",
            get_age_seconds(block[1]) if block else None,
        ),
        build_gauge(
            "checkpoint_position", "Id of the newest checkpoint.", checkpoint[0] if checkpoint else 0
        ),
        build_gauge(
            "checkpoint_age_seconds",
            "Seconds since it was signed.",
            get_age_seconds(checkpoint[1]) if checkpoint else None,
        ),
    ]


def find_newest(query: Callable[[], Any]) -> Any:
    """Return the row with the highest id; None if there is none."""
    return max((row for row in query_workspaces(query) if row), default=None)


def collect_lag() -> Sequence[Metric]:
    """Return how far sealing and signing are behind. `manage.py doctor` names the workspaces."""
    lags = list_workspace_lags()
    unsealed, unsigned = [lag.unsealed for lag in lags], [lag.unsigned for lag in lags]
    return [
        build_gauge(
            "ledger_unsealed_seconds",
            "Age of the oldest unsealed ledger row of any workspace.",
            max(unsealed, default=timedelta()).total_seconds(),
        ),
        build_gauge(
            "ledger_unsealed_workspaces",
            "Workspaces with an unsealed row that is older than the limit.",
            sum(lag.is_unsealed_too_long for lag in lags),
        ),
        build_gauge(
            "checkpoint_unsigned_seconds",
            "Age of the oldest unsigned change of any workspace.",
            max(unsigned, default=timedelta()).total_seconds(),
        ),
        build_gauge(
            "checkpoint_unsigned_workspaces",
            "Workspaces with an unsigned change that is older than the limit.",
            sum(lag.is_unsigned_too_long for lag in lags),
        ),
    ]


def collect_nodes() -> Sequence[Metric]:
    """Return whether each worker of Citus answers and how many workspaces are lost; nothing without it."""
    states = list_node_states()
    if not states:
        return []
    help_text = "Whether the coordinator can reach a node of the distributed database."
    lost = 0 if all(states.values()) else len(list_unreachable_workspaces())
    return [
        build_labelled_gauge("database_node_up", help_text, "node", states),
        build_gauge("database_unreachable_workspaces", "Workspaces whose node cannot be reached.", lost),
    ]


def collect_heartbeat() -> Sequence[Metric]:
    heartbeat = cache.get(HEARTBEAT_KEY)
    # The cache entry expires after a few minutes. The age is then unknown and reported as infinite.
    seconds = get_age_seconds(datetime.fromisoformat(heartbeat)) if heartbeat else math.inf
    return [
        build_gauge(
            "worker_heartbeat_age_seconds", "Seconds since broker, beat and worker last responded.", seconds
        )
    ]


def collect_journal() -> Sequence[Metric]:
    at = get_journal_status().get("at")
    seconds = get_age_seconds(datetime.fromisoformat(at)) if at else math.inf
    return [
        build_gauge(
            "endings_journal_age_seconds", "Seconds since the journal of endings was complete.", seconds
        )
    ]


def get_age_seconds(at: datetime | None) -> float:
    return max(0.0, (timezone.now() - at).total_seconds()) if at else 0.0


# --- Redis and disk ------------------------------------------------------------------------------------


def collect_broker() -> Sequence[Metric]:
    with connect_redis(settings.REDIS_URL) as client:
        waiting = {queue.name: int(str(client.llen(queue.name))) for queue in settings.CELERY_TASK_QUEUES}
        unacked = client.hlen(UNACKED_KEY)
        memory = client.info("memory")
    return [
        build_labelled_gauge("broker_messages", "Messages not yet received by a worker.", "queue", waiting),
        build_gauge(
            "broker_messages_held", "Messages received by a worker and not yet finished.", int(str(unacked))
        ),
        build_gauge("redis_memory_bytes", "Memory that Redis uses.", dict(memory)["used_memory"]),
    ]


def collect_disk_usage() -> Sequence[Metric]:
    """Return the disk space of `var`. A job in the worker measures that of the checkpoint folder."""
    usage = shutil.disk_usage(find_existing_folder(Path(settings.VAR)))
    return [
        build_labelled_gauge(
            "disk_free_bytes", "Free disk space on the disks in use.", "place", {"var": usage.free}
        ),
        build_labelled_gauge("disk_size_bytes", "Disk size.", "place", {"var": usage.total}),
    ]


COLLECTORS: dict[str, tuple[MetricCollector, ...]] = {
    "database": (
        ping_database,
        collect_nodes,
        collect_build_queue,
        collect_refresh_queue,
        collect_record_positions,
        collect_lag,
        collect_heartbeat,
        collect_journal,
    ),
    "redis": (collect_broker,),
}
