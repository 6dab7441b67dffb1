"""The kept database: only the process that migrates holds the lock."""

from tests import database_dump


def test_asking_twice_for_a_database_that_is_not_there_does_not_block(tmp_path, monkeypatch):
    monkeypatch.setenv(database_dump.IS_OURS, "yes")
    monkeypatch.setattr(database_dump, "kept_dump", lambda: tmp_path / "dump.sql")
    assert [database_dump.ready_database() for _ in range(2)] == [None, None]
