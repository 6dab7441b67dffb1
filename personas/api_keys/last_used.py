"""Remembers when keys were used and writes it down now and then, away from the calls themselves."""

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

# Two looks a minute: what is written at most once a minute is then never much older.
FLUSH_INTERVAL = 30.0
# More keys than this in one process and half a minute: the rest is noted at their next use.
MAX_PENDING_KEYS = 10_000


class KeyUseTracker:
    """What one process has seen; nothing is collected, and no thread runs, before `begin`.

    `used` neither waits nor asks: single operations on a dict are whole by themselves.
    """

    def __init__(self, every: float = FLUSH_INTERVAL) -> None:
        self.every = every
        self.is_collecting = False
        self.thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._seen: dict[tuple[int, int], datetime] = {}

    def begin(self) -> None:
        """From now on uses are noted; a server says so when it starts."""
        self.is_collecting = True

    def used(self, workspace_id: int, key_id: int, at: datetime) -> None:
        if not self.is_collecting or len(self._seen) >= MAX_PENDING_KEYS:
            return
        self._seen[workspace_id, key_id] = at
        # Here and not in `begin`: a server may fork after it has started, and threads do not come along.
        if self.thread is None or not self.thread.is_alive():
            self._start()

    def flush(self) -> int:
        """Write down what was seen, and tell of how many keys; what cannot be written now is kept."""
        seen = {key: at for key in list(self._seen) if (at := self._seen.pop(key, None))}
        by_workspace: dict[int, dict[int, datetime]] = defaultdict(dict)
        for (workspace_id, key_id), at in seen.items():
            by_workspace[workspace_id][key_id] = at
        try:
            for workspace_id, uses in by_workspace.items():
                with workspace_scope(workspace_id):
                    save_last_used(workspace_id, uses)
        except DatabaseFailure as error:
            log.warning("key_use_write_failed", reason=str(error).partition("\n")[0])
            for key, at in seen.items():
                self._seen.setdefault(key, at)
            return 0
        return len(seen)

    def end(self) -> None:
        """Stop collecting, let the thread go and write down the rest."""
        self.is_collecting = False
        self._stopping.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None
        if self._seen:
            self.flush()

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return
        try:
            self._stopping = threading.Event()
            thread = threading.Thread(target=self._run, name="key-uses", daemon=True)
            thread.start()
            self.thread = thread
            # Runs at the end of servers' children too, which leave without the interpreter's own farewell.
            util.Finalize(None, self.end, exitpriority=10)
        except RuntimeError:
            # No threads left, or the process is ending: a call is not to fail for that.
            log.warning("key_use_tracking_failed")
        finally:
            self._starting.release()

    def _run(self) -> None:
        while not self._stopping.wait(self.every):
            self.flush()
            # Half a minute is long for a connection to be kept from others.
            connection.close()


PROCESS_TRACKER = KeyUseTracker()
start_tracking, record_key_use = PROCESS_TRACKER.begin, PROCESS_TRACKER.used
