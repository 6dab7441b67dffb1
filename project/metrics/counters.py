"""Counts in this process, and adds what was counted to the sums that all processes keep in Redis."""

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

# A scrape is rarely more often than every fifteen seconds, so nobody sees what is younger than this.
FLUSH_SECONDS = 5.0
COUNTERS_KEY = "dramatis:metrics"
# The name of a figure and the values of its labels; all of them are words of our own.
CounterField = tuple[str, ...]
FIELD_SEPARATOR = "|"


class ProcessCounters:
    """What one process has counted since it last told; nothing is counted before `begin`.

    Redis is not on anybody's path here: a thread tells it every few seconds, and a process that is killed
    takes those seconds with it.
    """

    def __init__(self, every: float = FLUSH_SECONDS) -> None:
        self.every = every
        self.is_counting = False
        self.thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._counted: dict[CounterField, int] = defaultdict(int)

    def begin(self) -> None:
        """From now on; servers and workers say so when they start."""
        self.is_counting = True

    def begin_anew(self) -> None:
        """In a child: what its parent has counted its parent will tell, and threads did not come along."""
        self._lock, self.thread = threading.Lock(), None
        self._counted = defaultdict(int)

    def add(self, amounts: Mapping[CounterField, int]) -> None:
        if not self.is_counting:
            return
        with self._lock:
            for field, amount in amounts.items():
                self._counted[field] += amount
            # Here and not in `begin`: a server may fork after it has started, and threads do not come along.
            if self.thread is None:
                self._start()

    def flush(self) -> bool:
        """Tell Redis; what it could not have heard is kept for the next time."""
        with self._lock:
            counted, self._counted = self._counted, defaultdict(int)
        if not counted:
            return True
        # Imported here because every process counts, and the library takes a third of a second to load.
        from redis.exceptions import RedisError

        try:
            with connect_redis(settings.REDIS_URL) as client:
                # A frozen server would later count whatever was sent to it, as often as it was sent.
                client.ping()
                send_counts(client, counted)
        except RedisError as error:
            log.info("metrics_flush_failed", error=type(error).__name__)
            with self._lock:
                for field, amount in counted.items():
                    self._counted[field] += amount
            return False
        return True

    def end(self) -> None:
        self.is_counting = False
        self._stopping.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None
        self.flush()

    def _start(self) -> None:
        self._stopping = threading.Event()
        thread = threading.Thread(target=self._run, name="figures", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No threads left, or the process is ending: a call is not to fail for that.
            return
        self.thread = thread
        # Runs at the end of servers' children too, which leave without the interpreter's own farewell.
        util.Finalize(None, self.end, exitpriority=10)

    def _run(self) -> None:
        while not self._stopping.wait(self.every):
            self.flush()


def send_counts(client: "redis.Redis", counted: Mapping[CounterField, int]) -> None:
    """Add to the sums of all. Whether it was heard if the answer fails nobody knows: it is not said again."""
    from redis.exceptions import RedisError

    try:
        with client.pipeline(transaction=True) as together:
            for field, amount in counted.items():
                together.hincrby(COUNTERS_KEY, FIELD_SEPARATOR.join(field), amount)
            together.execute()
    except RedisError as error:
        log.warning("metrics_lost", error=type(error).__name__)


def get_counter_sums() -> dict[CounterField, int]:
    """What all processes have counted since Redis was last emptied."""
    with connect_redis(settings.REDIS_URL, decode_responses=True) as client:
        found: dict[str, str] = client.hgetall(COUNTERS_KEY)
    return {tuple(name.split(FIELD_SEPARATOR)): int(value) for name, value in found.items()}


PROCESS_COUNTERS = ProcessCounters()
os.register_at_fork(after_in_child=PROCESS_COUNTERS.begin_anew)
start_counting, add_counts, flush_counts = (
    PROCESS_COUNTERS.begin,
    PROCESS_COUNTERS.add,
    PROCESS_COUNTERS.flush,
)
