"""Looks at the record while others write to it: one moment is seen, and nobody is kept waiting."""

import threading
from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.db import connections

from prompts.integrity.checkpoints import sign_checkpoint
from prompts.integrity.verify import WorkspaceVerification, verify_workspace
from prompts.integrity.verify.row_stream import read_only_snapshot
from prompts.ledger.blocks import seal_ledger
from prompts.models import LedgerEntry
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_moment_is_seen_whatever_is_written_meanwhile(workspace):
    stage = make_stage(workspace)
    stage.fetch()
    with read_only_snapshot():
        before = LedgerEntry.objects.in_workspace(workspace).count()
        elsewhere = threading.Thread(target=in_its_own_connection, args=(stage.fetch,))
        elsewhere.start()
        elsewhere.join(20)
        assert LedgerEntry.objects.in_workspace(workspace).count() == before == 1
    assert LedgerEntry.objects.in_workspace(workspace).count() == 2


def in_its_own_connection(verb) -> None:
    try:
        verb()
    finally:
        connections.close_all()


@pytest.mark.parametrize("most", [4, pytest.param(12, marks=pytest.mark.hard)])
def test_a_look_while_others_write_raises_no_false_alarm(workspace, settings, tmp_path, monkeypatch, most):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    monkeypatch.setattr("prompts.ledger.blocks.SETTLE_DELAY", -timedelta(seconds=60))
    stage, stop = make_stage(workspace), threading.Event()
    troubles: list[BaseException] = []

    def busy() -> None:
        number = 0
        while not stop.is_set() and number < 40:
            number += 1
            stage.edit(f"Be busy {number}.")
            stage.fetch()
            seal_ledger(workspace.pk)
            sign_checkpoint(workspace.pk)

    def watched() -> None:
        try:
            in_its_own_connection(busy)
        except BaseException as error:  # noqa: BLE001  # told below
            troubles.append(error)

    writer = threading.Thread(target=watched)
    writer.start()
    looks: list[WorkspaceVerification] = []
    while writer.is_alive() and len(looks) < most:
        looks.append(verify_workspace(workspace))
    stop.set()
    writer.join(60)
    assert not troubles
    assert [str(fault) for look in looks for fault in look.faults] == []
    assert verify_workspace(workspace).is_sound


@pytest.mark.planted
def test_looks_without_a_moment_of_their_own_are_found(workspace, monkeypatch):
    monkeypatch.setattr("tests.prompts.integrity.test_verify_concurrent.read_only_snapshot", nullcontext)
    with pytest.raises(AssertionError):
        test_one_moment_is_seen_whatever_is_written_meanwhile(workspace)
