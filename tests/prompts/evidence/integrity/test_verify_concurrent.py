"""Verification during concurrent writes reads one snapshot and does not block writers."""

import threading
from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.db import connections

from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.integrity.verify import WorkspaceVerification, verify_workspace
from prompts.evidence.integrity.verify.row_stream import read_only_snapshot
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.models import LedgerEntry
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db(transaction=True)


def test_verification_reads_one_snapshot(workspace):
    stage = make_stage(workspace)
    stage.fetch()
    with read_only_snapshot():
        before = LedgerEntry.objects.in_workspace(workspace).count()
        elsewhere = threading.Thread(target=run_in_own_connection, args=(stage.fetch,))
        elsewhere.start()
        elsewhere.join(60)
        assert LedgerEntry.objects.in_workspace(workspace).count() == before == 1
    assert LedgerEntry.objects.in_workspace(workspace).count() == 2


def run_in_own_connection(action) -> None:
    try:
        action()
    finally:
        connections.close_all()


@pytest.mark.slow
@pytest.mark.parametrize("most", [4, pytest.param(12, marks=pytest.mark.hard)])
def test_verification_during_writes_raises_no_false_alarm(workspace, settings, tmp_path, monkeypatch, most):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    monkeypatch.setattr("prompts.evidence.ledger.blocks.SETTLE_DELAY", -timedelta(seconds=60))
    stage, stop = make_stage(workspace), threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        number = 0
        while not stop.is_set() and number < 40:
            number += 1
            stage.edit(f"Be busy {number}.")
            stage.fetch()
            seal_ledger(workspace.pk)
            sign_checkpoint(workspace.pk)

    def run_writer() -> None:
        try:
            run_in_own_connection(write)
        except BaseException as error:  # noqa: BLE001  # asserted below
            errors.append(error)

    writer = threading.Thread(target=run_writer)
    writer.start()
    results: list[WorkspaceVerification] = []
    while writer.is_alive() and len(results) < most:
        results.append(verify_workspace(workspace))
    stop.set()
    writer.join(60)
    assert not errors
    assert [str(fault) for result in results for fault in result.faults] == []
    assert verify_workspace(workspace).is_sound


@pytest.mark.planted
def test_verification_without_a_snapshot_is_found(workspace, monkeypatch):
    monkeypatch.setattr(
        "tests.prompts.evidence.integrity.test_verify_concurrent.read_only_snapshot", nullcontext
    )
    with pytest.raises(AssertionError):
        test_verification_reads_one_snapshot(workspace)
