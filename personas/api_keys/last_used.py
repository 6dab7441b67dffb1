"""Last use of API keys: collected in memory and written in batches by a background thread."""

import threading
from collections import defaultdict
from datetime import datetime
from multiprocessing import util

import structlog
from django.db import Error as DatabaseFailure
from django.db import connection

from core.db.workspace_scope import workspace_scope
from personas.api_keys.services import save_last_used

log = structlog.get_logger(__name__)

# Seconds. Half of LAST_USED_RESOLUTION, so that the stored time is not much older than that.
FLUSH_INTERVAL = 30.0
# Bound of memory per process; the uses of further keys are recorded after the next flush.
MAX_PENDING_KEYS = 10_000


class KeyUseTracker:
    """Collects the uses of keys in one process; it collects nothing and runs no thread before `start`.

    `record_use` takes no lock and runs no query: single operations on a dict are atomic.
    """

    def __init__(self, interval: float = FLUSH_INTERVAL) -> None:
        self.interval = interval
        self.is_collecting = False
        self.thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._start_lock = threading.Lock()
        self._pending: dict[tuple[int, int], datetime] = {}

    def start(self) -> None:
        """Start collecting; servers call this at startup."""
        self.is_collecting = True

    def record_use(self, workspace_id: int, key_id: int, at: datetime) -> None:
        if not self.is_collecting or len(self._pending) >= MAX_PENDING_KEYS:
            return
        self._pending[workspace_id, key_id] = at
        # Here and not in `start`: a server may fork after startup, and threads do not survive a fork.
        if self.thread is None or not self.thread.is_alive():
            self._start_thread()

    def flush(self) -> int:
        """Write the pending uses and return the number of keys; after a database error they stay pending."""
        pending = {key: at for key in list(self._pending) if (at := self._pending.pop(key, None))}
        by_workspace: dict[int, dict[int, datetime]] = defaultdict(dict)
        for (workspace_id, key_id), at in pending.items():
            by_workspace[workspace_id][key_id] = at
        try:
            for workspace_id, uses in by_workspace.items():
                with workspace_scope(workspace_id):
                    save_last_used(workspace_id, uses)
        except DatabaseFailure as error:
            log.warning("key_use_write_failed", reason=str(error).partition("\n")[0])
            for key, at in pending.items():
                self._pending.setdefault(key, at)
            return 0
        return len(pending)

    def stop(self) -> None:
        """Stop collecting, end the thread and write the pending uses."""
        self.is_collecting = False
        self._stopping.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None
        if self._pending:
            self.flush()

    def _start_thread(self) -> None:
        if not self._start_lock.acquire(blocking=False):
            return
        try:
            self._stopping = threading.Event()
            thread = threading.Thread(target=self._run, name="key-uses", daemon=True)
            thread.start()
            self.thread = thread
            # Unlike atexit, this also runs when a forked server process exits.
            util.Finalize(None, self.stop, exitpriority=10)
        except RuntimeError:
            # Out of threads, or the process is shutting down: the request must not fail because of that.
            log.warning("key_use_tracking_failed")
        finally:
            self._start_lock.release()

    def _run(self) -> None:
        while not self._stopping.wait(self.interval):
            self.flush()
            # Do not occupy a database connection while waiting.
            connection.close()


PROCESS_TRACKER = KeyUseTracker()
start_tracking, record_key_use = PROCESS_TRACKER.start, PROCESS_TRACKER.record_use
