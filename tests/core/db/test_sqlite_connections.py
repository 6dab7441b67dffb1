"""SQLite connections stay open between requests, and never serve a file that was replaced."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from django.db.utils import ConnectionHandler

from core.db.sqlite_backend.base import DatabaseWrapper
from project.database.config import build_database_config


def write_file(path: Path, value: int) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE counter (value int)")
        database.execute("INSERT INTO counter VALUES (?)", [value])
        database.commit()


@pytest.fixture
def path(tmp_path) -> Path:
    file: Path = tmp_path / "data.sqlite3"
    write_file(file, 1)
    return file


@pytest.fixture
def wrapper(path) -> Iterator[Any]:
    """A connection of the product's settings, as a thread of a web process has it."""
    config = build_database_config(f"sqlite:///{path}", pool_size=1, statement_ms=0)
    connection: Any = ConnectionHandler({"default": config})["default"]
    with pytest.MonkeyPatch.context() as patch:
        # Tests without the database may not open Django's own connections; this one is none of them.
        patch.setattr(type(connection), "ensure_connection", open_connection)
        yield connection
        connection.close()


def open_connection(self: Any) -> None:
    if self.connection is None:
        self.connect()


def run_request(wrapper: Any) -> int:
    """Read as a request does. Django calls the same function when a request starts and when it ends."""
    wrapper.close_if_unusable_or_obsolete()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT value FROM counter")
        [value] = cursor.fetchone()
    wrapper.close_if_unusable_or_obsolete()
    return int(value)


def test_a_connection_stays_open_between_requests(wrapper):
    run_request(wrapper)
    raw = wrapper.connection
    assert run_request(wrapper) == 1
    assert wrapper.connection is raw is not None


def test_changes_of_other_connections_are_read(wrapper, path):
    assert run_request(wrapper) == 1
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE counter SET value = 2")
        other.commit()
    assert run_request(wrapper) == 2


def replace_file(path: Path) -> None:
    new = path.with_name("new.sqlite3")
    write_file(new, 7)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    new.replace(path)


def test_a_replaced_file_is_opened_again(wrapper, path):
    assert run_request(wrapper) == 1
    replace_file(path)
    assert run_request(wrapper) == 7


@pytest.mark.planted
def test_a_connection_that_ignores_the_replaced_file_is_noticed(wrapper, path, monkeypatch):
    monkeypatch.setattr(DatabaseWrapper, "find_file_id", lambda self: None)
    assert run_request(wrapper) == 1
    replace_file(path)
    assert run_request(wrapper) == 1


def test_a_removed_file_is_not_read_any_more(wrapper, path):
    assert run_request(wrapper) == 1
    path.unlink()
    with pytest.raises(DatabaseError, match="no such table"):
        run_request(wrapper)


def test_a_connection_is_closed_when_it_is_old(wrapper):
    run_request(wrapper)
    raw = wrapper.connection
    wrapper.close_at = 0
    run_request(wrapper)
    assert wrapper.connection is not raw
