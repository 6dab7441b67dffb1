"""Last use of keys: recorded without delaying requests, and not lost on a normal shutdown."""

import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from personas.api_keys import last_used
from personas.api_keys.last_used import KeyUseTracker
from personas.api_keys.services import create_key
from tests.workers import url_of_test_database

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def uses():
    """A tracker that the test flushes itself."""
    uses = KeyUseTracker(interval=3600)
    uses.start()
    yield uses
    uses.is_collecting = False
    uses._pending.clear()
    uses.stop()


@pytest.fixture
def key(workspace, by_alice):
    return create_key(workspace, "Desk", {}, by=by_alice)[0]


def last_use(key):
    key.refresh_from_db()
    return key.last_used_at


def list_own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "key-uses"]


def test_nothing_is_collected_and_no_thread_runs_before_start():
    uses = KeyUseTracker()
    uses.record_use(1, 1, timezone.now())
    assert uses.thread is None
    assert uses.flush() == 0


def test_recording_a_use_runs_no_query(uses, key, django_assert_num_queries):
    with django_assert_num_queries(0):
        uses.record_use(key.workspace_id, key.pk, timezone.now())
    assert last_use(key) is None


def test_the_last_of_many_uses_is_written_in_one_statement(uses, key, django_assert_num_queries):
    now = timezone.now()
    for seconds in range(1_000):
        uses.record_use(key.workspace_id, key.pk, now + timedelta(milliseconds=seconds))
    with django_assert_num_queries(1):
        assert uses.flush() == 1
    assert last_use(key) == now + timedelta(milliseconds=999)
    assert uses.flush() == 0


def test_a_flood_of_keys_is_bounded(uses):
    for number in range(last_used.MAX_PENDING_KEYS + 50):
        uses.record_use(1, number, timezone.now())
    assert len(uses._pending) == last_used.MAX_PENDING_KEYS


def test_a_use_costs_next_to_nothing(uses):
    """Ten thousand uses take less than half a second of processor time."""
    now = timezone.now()
    uses.record_use(1, 1, now)
    began = time.thread_time()
    for _ in range(10_000):
        uses.record_use(1, 1, now)
    assert time.thread_time() - began < 0.5


@pytest.mark.django_db(transaction=True)
def test_a_database_failure_loses_no_use(uses, key):
    def away(*_):
        raise OperationalError("gone\nwith details")

    now = timezone.now()
    uses.record_use(key.workspace_id, key.pk, now)
    with connection.execute_wrapper(away):
        assert uses.flush() == 0
        uses.record_use(key.workspace_id, key.pk, now + timedelta(seconds=1))
    assert uses.flush() == 1
    assert last_use(key) == now + timedelta(seconds=1)


@pytest.mark.django_db(transaction=True)
def test_one_thread_writes_and_ends_on_stop(workspace, by_alice):
    key, _ = create_key(workspace, "Desk", {}, by=by_alice)
    uses, now = KeyUseTracker(interval=0.02), timezone.now()
    uses.start()
    callers = [threading.Thread(target=uses.record_use, args=(workspace.pk, key.pk, now)) for _ in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    deadline = time.monotonic() + 10
    while last_use(key) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert last_use(key) == now
    assert len(list_own_threads()) == 1
    uses.stop()
    assert not list_own_threads()


def test_a_thread_that_did_not_survive_a_fork_is_started_again(uses):
    uses.record_use(1, 1, timezone.now())
    first = uses.thread
    uses._stopping.set()
    first.join(5)
    uses.record_use(1, 1, timezone.now())
    assert uses.thread is not first
    assert uses.thread.is_alive()


def test_a_process_that_cannot_start_a_thread_goes_on_serving(uses, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    uses.record_use(1, 1, timezone.now())
    assert uses.thread is None


ENDING = """
import multiprocessing
import django
django.setup()
from django.utils import timezone
from personas.api_keys.last_used import record_key_use, start_tracking

def serve():
    start_tracking()
    record_key_use({workspace}, {key}, timezone.now())

if {in_child}:
    child = multiprocessing.get_context("fork").Process(target=serve)
    child.start(); child.join()
else:
    serve()
"""


@pytest.mark.hard
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("in_child", [False, True])
def test_the_last_uses_are_written_when_a_process_ends(workspace, by_alice, in_child):
    key, _ = create_key(workspace, "Desk", {}, by=by_alice)
    code = ENDING.format(workspace=workspace.pk, key=key.pk, in_child=in_child)
    environment = {
        **os.environ,
        "DATABASE_URL": url_of_test_database(),
        "DJANGO_SETTINGS_MODULE": "project.settings",
    }
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=60)
    assert last_use(key) is not None
