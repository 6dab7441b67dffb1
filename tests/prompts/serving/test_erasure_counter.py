"""The counter of erasures, with which a fetch compares its cached text."""

from threading import Event, Thread

import pytest
from django.db import connection, transaction

from personas.models import Erasure, ErasureCounter
from prompts.serving.cache import get_erasure_number
from prompts.serving.ledger_insert import build_insert_sql
from tests.factories import make_workspace

TIMEOUT = 60


def write_tombstone(workspace, number):
    Erasure(
        workspace=workspace, kind="memory", object_id=number, reason="Requested", author_label="alice"
    ).save()


@pytest.mark.django_db
def test_each_tombstone_and_each_repeated_erasure_is_counted(workspace):
    assert get_erasure_number(workspace.pk) == 0
    write_tombstone(workspace, 1)
    write_tombstone(workspace, 2)
    assert get_erasure_number(workspace.pk) == 2
    Erasure.objects.in_workspace(workspace).filter(object_id=1).update(reason="Again")
    assert get_erasure_number(workspace.pk) == 3


@pytest.mark.django_db
def test_the_erasures_of_another_workspace_are_not_counted(workspace, mallory):
    other = make_workspace("Other", owner=mallory)
    write_tombstone(other, 1)
    assert (get_erasure_number(other.pk), get_erasure_number(workspace.pk)) == (1, 0)


@pytest.mark.django_db
def test_a_rolled_back_erasure_is_not_counted(workspace):
    with transaction.atomic():
        write_tombstone(workspace, 1)
        transaction.set_rollback(True)
    assert not ErasureCounter.objects.in_workspace(workspace).exists()


@pytest.mark.parametrize("vendor", ["postgresql", "sqlite"])
def test_the_statement_of_a_fetch_reads_no_tombstones(vendor):
    sql = build_insert_sql(vendor, "label", is_key=True)
    assert "personas_erasurecounter" in sql
    assert "personas_erasure " not in sql


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite has one writer at a time")
def test_of_two_concurrent_erasures_the_second_is_committed_after_the_first(workspace):
    """Otherwise a fetch between the two commits could see a number that includes an uncommitted erasure."""
    order: list[str] = []
    has_begun, may_commit = Event(), Event()

    def erase_slowly():
        with transaction.atomic():
            write_tombstone(workspace, 1)
            has_begun.set()
            may_commit.wait(TIMEOUT)
            order.append("first")
        connection.close()

    def erase_quickly():
        with transaction.atomic():
            write_tombstone(workspace, 2)
            order.append("second")
        connection.close()

    threads = [Thread(target=erase_slowly), Thread(target=erase_quickly)]
    threads[0].start()
    assert has_begun.wait(TIMEOUT)
    threads[1].start()
    threads[1].join(0.3)
    assert get_erasure_number(workspace.pk) == 0
    may_commit.set()
    for thread in threads:
        thread.join(TIMEOUT)
    assert order == ["first", "second"]
    assert get_erasure_number(workspace.pk) == 2
