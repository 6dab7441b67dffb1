import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from core.db.sqlite_backend.write_lock import begin_immediate


@pytest.fixture
def file(tmp_path) -> Path:
    path: Path = tmp_path / "counter.sqlite3"
    with closing(open_database(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE counter (value int)")
        database.execute("INSERT INTO counter VALUES (0)")
    return path


def open_database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)


def get_value(path: Path) -> int:
    with closing(open_database(path)) as database:
        return int(database.execute("SELECT value FROM counter").fetchone()[0])


def test_many_writers_take_turns(file):
    def add(_: int) -> float:
        with closing(open_database(file)) as database:
            longest = 0.0
            for _number in range(20):
                began = time.monotonic()
                begin_immediate(database, str(file), 10)
                longest = max(longest, time.monotonic() - began)
                [value] = database.execute("SELECT value FROM counter").fetchone()
                database.execute("UPDATE counter SET value = ?", [value + 1])
                database.execute("COMMIT")
            return longest

    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(add, range(8)))
    assert get_value(file) == 160
    assert max(waits) < 10


def test_a_writer_waits_until_the_lock_is_free(file):
    with closing(open_database(file)) as first, closing(open_database(file)) as second:
        begin_immediate(first, str(file), 10)
        started = Event()

        def begin() -> None:
            started.set()
            begin_immediate(second, str(file), 10)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(begin)
            started.wait(10)
            time.sleep(0.05)
            assert not waiting.done()
            first.execute("COMMIT")
            waiting.result(10)
        second.execute("ROLLBACK")


def test_a_lock_that_is_not_released_ends_the_wait_and_the_queue_goes_on(file):
    with closing(open_database(file)) as first, closing(open_database(file)) as second:
        begin_immediate(first, str(file), 10)
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                begin_immediate(second, str(file), 0.05)
        # Statements outside of transactions wait as before.
        assert second.execute("PRAGMA busy_timeout").fetchone() == (50,)
        first.execute("COMMIT")
        begin_immediate(second, str(file), 10)
        second.execute("ROLLBACK")


def test_a_process_that_writes_without_a_pause_lets_others_write(file):
    """It begins again at once after each commit. Another process waits for two or three of these."""
    code = (
        "import sqlite3, sys, time\n"
        "from core.db.sqlite_backend.write_lock import begin_immediate\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "print('started', flush=True)\n"
        "while True:\n"
        "    begin_immediate(database, sys.argv[1], 10)\n"
        "    database.execute('UPDATE counter SET value = value + 1')\n"
        "    time.sleep(0.005)\n"
        "    database.execute('COMMIT')\n"
    )
    command = [sys.executable, "-c", code, str(file)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as busy,
        closing(open_database(file)) as own,
    ):
        try:
            assert busy.stdout is not None
            assert busy.stdout.readline() == "started\n"
            passed = []
            for _ in range(20):
                before = get_value(file)
                begin_immediate(own, str(file), 10)
                passed.append(own.execute("SELECT value FROM counter").fetchone()[0] - before)
                own.execute("COMMIT")
        finally:
            busy.kill()
    # Two, or three if it committed between the two statements here.
    assert sorted(passed)[10] <= 3


def test_the_file_of_the_turn_is_private(file):
    with closing(open_database(file)) as database:
        begin_immediate(database, str(file), 10)
        database.execute("ROLLBACK")
    assert Path(f"{file}-turn").stat().st_mode & 0o777 == 0o600


def test_other_errors_are_not_repeated(file):
    with closing(open_database(file)) as database:
        database.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
            begin_immediate(database, str(file), 10)
