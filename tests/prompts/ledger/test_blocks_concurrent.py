"""Closing the ledger while others close it or are served: in threads, on rows that are committed."""

from threading import Thread

import pytest
from django.db import connection, transaction

from prompts.ledger import blocks
from prompts.ledger.blocks import seal_block, seal_ledger
from tests.prompts.ledger.test_blocks import blocks_of, chain_verdict
from tests.prompts.serving.serving_stage import Stage, fetch, ledger_verdict, make_stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rested(workspace, monkeypatch) -> Stage:
    monkeypatch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    return make_stage(workspace)


def test_two_who_seal_at_once_make_one_chain(rested, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCK_ROWS", 3)
    for _ in range(12):
        rested.fetch()
    errors: list[Exception] = []

    def work() -> None:
        try:
            seal_ledger(rested.workspace.pk)
        except Exception as error:  # noqa: BLE001  # told to the test below
            errors.append(error)
        finally:
            connection.close()

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [block.sequence for block in blocks_of(rested.workspace)] == [1, 2, 3, 4]
    assert ledger_verdict(rested.workspace).first is None
    assert chain_verdict(rested.workspace).first is None


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite knows one writer at a time")
def test_bots_are_served_while_a_block_is_closed(rested):
    rested.fetch()
    served: list[int] = []

    def work() -> None:
        try:
            served.append(fetch(rested.secret).ledger_id)
        finally:
            connection.close()

    with transaction.atomic():
        assert seal_block(rested.workspace.pk) is not None
        thread = Thread(target=work)
        thread.start()
        thread.join(timeout=1.5)
        assert len(served) == 1
    thread.join()
    seal_ledger(rested.workspace.pk)
    assert ledger_verdict(rested.workspace).first is None
