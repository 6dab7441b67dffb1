"""What is asked of database, Redis and disk at the moment of a scrape: little, and each by an index."""

import math
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client.core import Metric

from project.metrics.exposition import build_gauge, build_labelled_gauge
from project.redis_client import connect_redis
from project.tasks import HEARTBEAT_KEY
from prompts.models import BuildCause, Checkpoint, LedgerBlock, LedgerEntry
from skills.models import RefreshRun, RunStatus

log = structlog.get_logger(__name__)

QUEUE_KEY = "celery"
UNACKED_KEY = "unacked"
MetricCollector = Callable[[], Sequence[Metric]]


def collect_gauges() -> list[Metric]:
    """What answers; a part that does not answer is down, and its figures are left out."""
    families: list[Metric] = [*collect_disk_usage()]
    states: dict[str, float] = {}
    for part, questions in COLLECTORS.items():
        answers = run_collectors(part, questions)
        states[part] = answers is not None
        families += answers or []
    return [build_labelled_gauge("up", "Whether a part of the product answers.", "part", states), *families]


def run_collectors(part: str, questions: Sequence[MetricCollector]) -> list[Metric] | None:
    try:
        return [figure for ask in questions for figure in ask()]
    # Whatever went wrong, the part did not answer; the reason may name hosts, so it goes to the log only.
    except Exception as error:  # noqa: BLE001
        log.warning("metrics_collection_failed", part=part, error=type(error).__name__, reason=str(error))
        return None


# --- database ------------------------------------------------------------------------------------------


def ping_database() -> Sequence[Metric]:
    """A question that needs no table, so that one that is missing counts as a part that is down."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return []


def collect_build_queue() -> Sequence[Metric]:
    waiting = BuildCause.unscoped.aggregate(agents=Count("agent", distinct=True), oldest=Min("at"))
    return [
        build_gauge("build_queue_agents", "Agents whose prompts wait to be built.", waiting["agents"]),
        build_gauge(
            "build_queue_age_seconds",
            "How long the oldest of them waits.",
            get_age_seconds(waiting["oldest"]),
        ),
    ]


def collect_refresh_queue() -> Sequence[Metric]:
    rows = RefreshRun.unscoped.filter(status=RunStatus.QUEUED).order_by()
    waiting = rows.aggregate(runs=Count("pk"), oldest=Min("requested_at"))
    return [
        build_gauge("refresh_queue_runs", "Looks at sources that wait for a worker.", waiting["runs"]),
        build_gauge(
            "refresh_queue_age_seconds",
            "How long the oldest of them waits.",
            get_age_seconds(waiting["oldest"]),
        ),
    ]


def collect_record_positions() -> Sequence[Metric]:
    """Positions, by the newest row: counting millions of them is no question for a scrape."""
    entry = LedgerEntry.unscoped.order_by("-pk").values_list("pk", flat=True).first()
    block = LedgerBlock.unscoped.order_by("-pk").values_list("last_id", "at").first()
    checkpoint = Checkpoint.unscoped.order_by("-pk").values_list("pk", "at").first()
    return [
        build_gauge("ledger_position", "Id of the newest ledger row.", entry or 0),
        build_gauge(
            "ledger_sealed_position", "Id of the last row in the newest block.", block[0] if block else 0
        ),
        build_gauge(
            "ledger_block_age_seconds",
            "Since the newest block.",
            get_age_seconds(block[1]) if block else None,
        ),
        build_gauge(
            "checkpoint_position", "Id of the newest checkpoint.", checkpoint[0] if checkpoint else 0
        ),
        build_gauge(
            "checkpoint_age_seconds",
            "Since it was signed.",
            get_age_seconds(checkpoint[1]) if checkpoint else None,
        ),
    ]


def collect_heartbeat() -> Sequence[Metric]:
    said = cache.get(HEARTBEAT_KEY)
    # The note itself runs out after minutes; then nobody knows since when there is no worker.
    seconds = get_age_seconds(datetime.fromisoformat(said)) if said else math.inf
    return [
        build_gauge("worker_heartbeat_age_seconds", "Since broker, beat and worker last worked.", seconds)
    ]


def get_age_seconds(at: datetime | None) -> float:
    return max(0.0, (timezone.now() - at).total_seconds()) if at else 0.0


# --- Redis and disk ------------------------------------------------------------------------------------


def collect_broker() -> Sequence[Metric]:
    with connect_redis(settings.REDIS_URL) as client:
        waiting, held = client.llen(QUEUE_KEY), client.hlen(UNACKED_KEY)
        memory = client.info("memory")
    return [
        build_gauge("broker_messages", "Messages that no worker has taken.", int(str(waiting))),
        build_gauge(
            "broker_messages_held", "Messages that a worker has taken and not finished.", int(str(held))
        ),
        build_gauge("redis_memory_bytes", "Memory that Redis uses.", dict(memory)["used_memory"]),
    ]


def collect_disk_usage() -> Sequence[Metric]:
    places = {"var": settings.VAR, "checkpoints": settings.DRAMATIS_CHECKPOINT_DIR}
    found = {name: shutil.disk_usage(find_existing_folder(Path(place))) for name, place in places.items()}
    free = {name: usage.free for name, usage in found.items()}
    size = {name: usage.total for name, usage in found.items()}
    return [
        build_labelled_gauge("disk_free_bytes", "Free disk space where the product writes.", "place", free),
        build_labelled_gauge("disk_size_bytes", "Disk size.", "place", size),
    ]


def find_existing_folder(place: Path) -> Path:
    """The folder itself or, until it is made, the one it will lie in."""
    return next(folder for folder in (place, *place.parents) if folder.exists())


COLLECTORS: dict[str, tuple[MetricCollector, ...]] = {
    "database": (
        ping_database,
        collect_build_queue,
        collect_refresh_queue,
        collect_record_positions,
        collect_heartbeat,
    ),
    "redis": (collect_broker,),
}
