"""Concurrent sealing and serving: in threads, on committed rows."""

from threading import Thread

import pytest
from django.db import connection, transaction

from prompts.evidence.ledger import blocks
from prompts.evidence.ledger.blocks import seal_block, seal_ledger
from tests.prompts.evidence.ledger.test_blocks import blocks_of, chain_verdict
from tests.prompts.serving.serving_stage import Stage, fetch, ledger_verdict, make_stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def settled(workspace, monkeypatch) -> Stage:
    monkeypatch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    return make_stage(workspace)


def test_concurrent_sealing_makes_one_chain(settled, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCK_ROWS", 3)
    for _ in range(12):
        settled.fetch()
    errors: list[Exception] = []

    def work() -> None:
        try:
            seal_ledger(settled.workspace.pk)
        except Exception as error:  # noqa: BLE001  # asserted below
            errors.append(error)
        finally:
            connection.close()

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [block.sequence for block in blocks_of(settled.workspace)] == [1, 2, 3, 4]
    assert ledger_verdict(settled.workspace).first is None
    assert chain_verdict(settled.workspace).first is None


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite knows one writer at a time")
def test_bots_are_served_while_a_block_is_sealed(settled):
    settled.fetch()
    served: list[int] = []

    def work() -> None:
        try:
            served.append(fetch(settled.secret).ledger_id)
        finally:
            connection.close()

    with transaction.atomic():
        assert seal_block(settled.workspace.pk) is not None
        thread = Thread(target=work)
        thread.start()
        thread.join(timeout=20)
        assert len(served) == 1
    thread.join()
    seal_ledger(settled.workspace.pk)
    assert ledger_verdict(settled.workspace).first is None
