"""Times of last use of API keys, collected in memory and written in batches by a background thread."""

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

# Seconds between two writes: half of LAST_USED_RESOLUTION, so that `last_used_at` lags only a little.
FLUSH_INTERVAL = 30.0
# Limits the memory per process. While this many keys are pending, uses are not recorded until the next flush.
MAX_PENDING_KEYS = 10_000


class KeyUseTracker:
    """Collects the times of last use of API keys in one process, and writes them in a background thread.

    Before `start` is called, it collects nothing and runs no thread. `record_use` is called in every request,
    so it runs no query. It needs no lock either, because single operations on a dict are atomic.
    """

    def __init__(self, interval: float = FLUSH_INTERVAL) -> None:
        self.interval = interval
        self.is_collecting = False
        self.thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._start_lock = threading.Lock()
        self._pending: dict[tuple[int, int], datetime] = {}

    def start(self) -> None:
        """Start to collect uses. Servers call this at startup."""
        self.is_collecting = True

    def record_use(self, workspace_id: int, key_id: int, at: datetime) -> None:
        if not self.is_collecting or len(self._pending) >= MAX_PENDING_KEYS:
            return
        self._pending[workspace_id, key_id] = at
        # Start the thread here and not in `start`: a server may fork after startup, and threads do not
        # survive a fork.
        if self.thread is None or not self.thread.is_alive():
            self._start_thread()

    def flush(self) -> int:
        """Write the pending uses to the database and return the number of keys.

        After a database error the uses stay pending, and the result is 0.
        """
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
        """Stop collecting, end the thread and write the uses that are still pending."""
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
            # Write pending uses at exit. Unlike atexit, Finalize also runs when a forked process exits.
            util.Finalize(None, self.stop, exitpriority=10)
        except RuntimeError:
            # The thread limit is reached or the process is shutting down. The request must not fail.
            log.warning("key_use_tracking_failed")
        finally:
            self._start_lock.release()

    def _run(self) -> None:
        while not self._stopping.wait(self.interval):
            self.flush()
            # Release the database connection while the thread waits for the next interval.
            connection.close()


PROCESS_TRACKER = KeyUseTracker()
start_tracking, record_key_use = PROCESS_TRACKER.start, PROCESS_TRACKER.record_use
