"""Edits by API: how many statements and round trips they take, and that the fast path keeps its locks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from core.db.before_commit import atomic_with_hooks
from personas.models import Revision, Soul
from personas.records.fast_write import FastRecordWrite, RecordWrite, lock_and_load_record, start_write
from personas.records.services import edit_record, lock_record
from personas.selectors import list_souls
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

# Locks are remembered for a transaction of `atomic_with_hooks`, which must be the outermost one.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def soul(workspace) -> Soul:
    soul = make_soul(workspace, label="Calm", text="Be calm.")
    make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    return soul


@dataclass
class Traffic:
    """Statements that were sent, and their round trips: one for a pipeline, one for any other statement."""

    statements: int = 0
    round_trips: int = 0


@contextmanager
def count_traffic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    traffic = Traffic()
    sizes: list[int] = []
    wrapper: Any = type(connections["default"])
    open_pipeline = wrapper.open_pipeline

    @contextmanager
    def open_counted(self: Any) -> Iterator[Callable[[], Any]]:
        sizes.append(0)
        with open_pipeline(self) as create_cursor:

            def create_counted() -> Any:
                sizes[-1] += 1
                return create_cursor()

            yield create_counted

    with monkeypatch.context() as patch, CaptureQueriesContext(connection) as queries:
        patch.setattr(wrapper, "open_pipeline", open_counted)
        yield traffic
    traffic.statements = len(queries)
    traffic.round_trips = len(queries) - sum(sizes) + len(sizes)


def test_an_edit_by_api_takes_few_round_trips(workspace, soul, admin, monkeypatch):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no round trips")
    memory = make_memory(workspace, "Tea at four.", agent=soul.agents.get())
    # With a new version of one prompt; BEGIN and COMMIT count.
    limits = {"souls/calm": Traffic(33, 8), f"memories/{memory.pk}": Traffic(37, 15)}
    for path, limit in limits.items():
        admin.patch(path, {"text": "Be quiet."}, "*")
        with count_traffic(monkeypatch) as traffic:
            assert admin.patch(path, {"text": "Be brave."}, "*").status_code == 200
        assert traffic.statements <= limit.statements, path
        assert traffic.round_trips <= limit.round_trips, path
        with count_traffic(monkeypatch) as unchanged:
            admin.patch(path, {"text": "Be brave."}, "*")
        assert unchanged.statements < traffic.statements / 2


def load_locked(soul: Soul) -> Soul:
    [loaded] = lock_and_load_record(Soul, list_souls, soul.workspace, "slug", soul.slug)
    return loaded


def test_a_record_that_was_locked_when_it_was_loaded_is_not_loaded_again(soul):
    with atomic_with_hooks():
        loaded = load_locked(soul)
        assert lock_record(loaded) is loaded
        # Another instance may be older than the lock.
        assert lock_record(soul) is not soul
    with atomic_with_hooks():
        assert lock_record(loaded) is not loaded


def test_a_record_is_written_with_its_revision_unless_a_key_or_a_child_row_changes(workspace, soul):
    assert isinstance(start_write(soul, {"text": "Be brave."}, is_new=False), FastRecordWrite)
    plain = [
        start_write(soul, {"slug": "brave"}, is_new=False),
        start_write(soul.agents.get(), {"description": "Flies."}, is_new=False),
        start_write(Soul(workspace=workspace), {"label": "New"}, is_new=True),
    ]
    assert [type(write) for write in plain] == [RecordWrite] * 3


def test_an_unchanged_record_keeps_its_revision(soul):
    saved = edit_record(soul, {"text": "Be calm."}, expected=1, by=BY)
    assert saved.revision == 1
    soul.refresh_from_db()
    assert soul.revision == 1
    assert Revision.unscoped.filter(kind="soul", object_id=soul.pk).count() == 1
