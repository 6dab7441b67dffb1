"""Counters of this process, added periodically to the sums of all processes in Redis."""

import os
import threading
from collections import defaultdict
from collections.abc import Mapping
from multiprocessing import util
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from project.redis_client import connect_redis

if TYPE_CHECKING:
    import redis

log = structlog.get_logger(__name__)

# Shorter than the usual scrape interval of fifteen seconds.
FLUSH_SECONDS = 5.0
COUNTERS_KEY = "dramatis:metrics"
# The name of a metric and its label values; all of them are defined in our code.
CounterField = tuple[str, ...]
FIELD_SEPARATOR = "|"


class ProcessCounters:
    """Counts of this process since its last flush to Redis; nothing is counted before `start`.

    No request waits for Redis: a thread flushes every few seconds. A killed process loses the counts of its
    last seconds.
    """

    def __init__(self, interval: float = FLUSH_SECONDS) -> None:
        self.interval = interval
        self.is_counting = False
        self.thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._counts: dict[CounterField, int] = defaultdict(int)

    def start(self) -> None:
        """Start counting; servers and workers call this when they start."""
        self.is_counting = True

    def reset_after_fork(self) -> None:
        """Reset in a child process: the parent flushes its own counts, and threads do not survive a fork."""
        self._lock, self.thread = threading.Lock(), None
        self._counts = defaultdict(int)

    def add(self, amounts: Mapping[CounterField, int]) -> None:
        if not self.is_counting:
            return
        with self._lock:
            for field, amount in amounts.items():
                self._counts[field] += amount
            # Not in `start`: a server may fork after its start, and threads do not survive a fork.
            if self.thread is None:
                self._start_thread()

    def flush(self) -> bool:
        """Add the counts to the sums in Redis; if they cannot have arrived, keep them for the next flush."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(int)
        if not counts:
            return True
        # Imported here because every process counts, and importing the library takes a third of a second.
        from redis.exceptions import RedisError

        try:
            with connect_redis(settings.REDIS_URL) as client:
                # Ping first: a frozen server would execute every repeated command later, and count too much.
                client.ping()
                send_counts(client, counts)
        except RedisError as error:
            log.info("metrics_flush_failed", error=type(error).__name__)
            with self._lock:
                for field, amount in counts.items():
                    self._counts[field] += amount
            return False
        return True

    def stop(self) -> None:
        self.is_counting = False
        self._stopping.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None
        self.flush()

    def _start_thread(self) -> None:
        self._stopping = threading.Event()
        thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No threads left, or the process is exiting: the request must not fail because of that.
            return
        self.thread = thread
        # Unlike atexit, this also runs in multiprocessing children of servers.
        util.Finalize(None, self.stop, exitpriority=10)

    def _run(self) -> None:
        while not self._stopping.wait(self.interval):
            self.flush()


def send_counts(client: "redis.Redis", counts: Mapping[CounterField, int]) -> None:
    """Add the counts to the shared sums. If Redis does not confirm, they are dropped, not sent twice."""
    from redis.exceptions import RedisError

    try:
        with client.pipeline(transaction=True) as pipeline:
            for field, amount in counts.items():
                pipeline.hincrby(COUNTERS_KEY, FIELD_SEPARATOR.join(field), amount)
            pipeline.execute()
    except RedisError as error:
        log.warning("metrics_lost", error=type(error).__name__)


def get_counter_sums() -> dict[CounterField, int]:
    """Return the sums of all processes since Redis was last emptied."""
    with connect_redis(settings.REDIS_URL, decode_responses=True) as client:
        sums: dict[str, str] = client.hgetall(COUNTERS_KEY)
    return {tuple(name.split(FIELD_SEPARATOR)): int(value) for name, value in sums.items()}


PROCESS_COUNTERS = ProcessCounters()
os.register_at_fork(after_in_child=PROCESS_COUNTERS.reset_after_fork)
start_counting, add_counts, flush_counts = (
    PROCESS_COUNTERS.start,
    PROCESS_COUNTERS.add,
    PROCESS_COUNTERS.flush,
)
