"""Metric counters: each process counts in memory, and periodically adds its counts to the sums in Redis."""

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
# The name of a metric, followed by its label values. They come from code, not from users, so none of them
# contains the separator.
CounterField = tuple[str, ...]
FIELD_SEPARATOR = "|"


class ProcessCounters:
    """Counts of this process since its last flush to Redis. Nothing is counted before `start` is called.

    A thread flushes the counts every few seconds, so that no request waits for Redis. A process that is
    killed loses the counts since its last flush.
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
        """Discard counts and thread in a forked child process.

        The counts are flushed by the parent process, and the thread does not exist in the child.
        """
        self._lock, self.thread = threading.Lock(), None
        self._counts = defaultdict(int)

    def add(self, amounts: Mapping[CounterField, int]) -> None:
        if not self.is_counting:
            return
        with self._lock:
            for field, amount in amounts.items():
                self._counts[field] += amount
            # The thread is not started in `start`: a server may fork after that, and would lose the thread.
            if self.thread is None:
                self._start_thread()

    def flush(self) -> bool:
        """Add the counts to the sums in Redis, and return whether Redis responded.

        If it did not respond, the counts are kept for the next flush.
        """
        with self._lock:
            counts, self._counts = self._counts, defaultdict(int)
        if not counts:
            return True
        # Imported here, because every process imports this module and redis takes a third of a second.
        from redis.exceptions import RedisError

        try:
            with connect_redis(settings.REDIS_URL) as client:
                # Ping first. A frozen server would execute the commands of every attempt later, and so add
                # the same counts several times.
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
            # The thread limit is reached or the process is exiting. The request must still succeed.
            return
        self.thread = thread
        # Flush when the process exits. Unlike atexit, this also works in child processes of multiprocessing.
        util.Finalize(None, self.stop, exitpriority=10)

    def _run(self) -> None:
        while not self._stopping.wait(self.interval):
            self.flush()


def send_counts(client: "redis.Redis", counts: Mapping[CounterField, int]) -> None:
    """Add the counts to the sums in Redis.

    If Redis does not confirm, the counts are dropped: sending them again could count them twice.
    """
    from redis.exceptions import RedisError

    try:
        with client.pipeline(transaction=True) as pipeline:
            for field, amount in counts.items():
                pipeline.hincrby(COUNTERS_KEY, FIELD_SEPARATOR.join(field), amount)
            pipeline.execute()
    except RedisError as error:
        log.warning("metrics_lost", error=type(error).__name__)


def get_counter_sums() -> dict[CounterField, int]:
    """Return the sums of the counts of all processes since Redis was last emptied."""
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
