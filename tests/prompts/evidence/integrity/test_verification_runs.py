"""Verification by command and by worker, and its speed and memory with many rows."""

import json
import time
import tracemalloc
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models import QuerySet
from django.utils import timezone

from personas.actors import SYSTEM_ACTOR
from personas.models import AuditEvent
from prompts.evidence.integrity import services as integrity_services
from prompts.evidence.integrity.services import MAX_RUN_TIME, request_verification, run_verification
from prompts.evidence.integrity.verify import verify_workspace
from prompts.models import LedgerEntry, VerificationRun, VerificationStatus
from prompts.proof_rows import build_ledger_row, get_prompt_key
from prompts.publishing.builds.sweep import list_queued_verifications
from prompts.tasks import verify_chain_job
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.prompts.evidence.integrity.history_stage import History

pytestmark = pytest.mark.django_db

# --- command -------------------------------------------------------------------------------------------


def test_the_command_prints_counts_and_succeeds(history, capsys):
    call_command("verify_chain", history.workspace.slug)
    out = capsys.readouterr().out
    assert "Verified: no tampering found." in out
    assert "15 versions" in out


def test_the_command_ends_with_1_and_names_the_first_bad_row(history, elsewhere, capsys):
    with unguarded():
        by_hand("UPDATE prompts_labelmove SET author_label = 'nobody' WHERE sequence = 2")
        with pytest.raises(SystemExit) as caught:
            call_command("verify_chain")
    assert caught.value.code == 1
    out = capsys.readouterr().out
    assert "errors. The first: label move 2 of “Pilot” on “Deck”: its content does not match its hash" in out
    assert f"{elsewhere.slug}: 0 rows" in out


def test_the_command_prints_json(history, capsys):
    call_command("verify_chain", history.workspace.slug, "--json")
    result = json.loads(capsys.readouterr().out)[history.workspace.slug]
    assert result["is_sound"]
    assert result["rows"]["versions"] == 15
    with unguarded():
        by_hand("UPDATE prompts_promptversion SET message = 'x' WHERE number = 1")
        with pytest.raises(SystemExit):
            call_command("verify_chain", "--json")
    result = json.loads(capsys.readouterr().out)[history.workspace.slug]
    assert (result["is_sound"], result["bad"]) == (False, 3)
    assert result["faults"][0]["table"] == "version"


def test_an_unknown_workspace_is_an_error(capsys):
    with pytest.raises(CommandError, match="not found"):
        call_command("verify_chain", "nowhere")


# --- worker --------------------------------------------------------------------------------------------


def test_a_verification_is_run_and_stored(history):
    run = request_verification(history.workspace, by=history.by)
    assert run.status == VerificationStatus.QUEUED
    verify_chain_job(history.workspace.pk, run.pk)
    run.refresh_from_db()
    assert run.status == VerificationStatus.DONE
    assert run.result["is_sound"]
    assert run.result["rows"]["versions"] == 15
    assert AuditEvent.objects.in_workspace(history.workspace).filter(verb="requested").count() == 1


def test_an_open_verification_is_reused(history):
    run = request_verification(history.workspace, by=history.by)
    assert request_verification(history.workspace, by=history.by) == run
    run_verification(history.workspace.pk, run.pk)
    assert run_verification(history.workspace.pk, run.pk) is None
    assert request_verification(history.workspace, by=history.by) != run


def test_a_verification_lost_with_its_worker_is_replaced(history):
    run = request_verification(history.workspace, by=history.by)
    long_ago = timezone.now() - MAX_RUN_TIME - timedelta(minutes=1)
    VerificationRun.objects.in_workspace(history.workspace).update(
        status=VerificationStatus.RUNNING, started_at=long_ago
    )
    assert request_verification(history.workspace, by=history.by) != run
    run.refresh_from_db()
    assert (run.status, run.problem) == (
        VerificationStatus.FAILED,
        ("The worker stopped before the run was finished."),
    )


def test_a_failed_verification_stores_the_error(history, monkeypatch):
    def broken(workspace):
        raise MemoryError

    monkeypatch.setattr(integrity_services, "verify_workspace", broken)
    run = request_verification(history.workspace, by=history.by)
    with pytest.raises(MemoryError):
        run_verification(history.workspace.pk, run.pk)
    run.refresh_from_db()
    assert run.status == VerificationStatus.FAILED
    assert "MemoryError" in run.problem


def test_a_verification_lost_by_the_broker_is_found_by_the_sweep(history):
    run = request_verification(history.workspace, by=SYSTEM_ACTOR)
    assert list_queued_verifications(timezone.now()) == []
    assert list_queued_verifications(timezone.now() + timedelta(seconds=11)) == [
        (history.workspace.pk, run.pk)
    ]


def test_the_verification_of_another_workspace_cannot_be_run(history, elsewhere):
    run = request_verification(history.workspace, by=history.by)
    assert run_verification(elsewhere.pk, run.pk) is None


# --- many rows -----------------------------------------------------------------------------------------


def measure_rows_per_second(history: History) -> float:
    """Return the number of rows verified per second of CPU time."""
    started = time.process_time()
    verification = verify_workspace(history.workspace)
    assert verification.is_sound
    assert verification.rows["ledger rows"] == 6_009
    return verification.checked / (time.process_time() - started)


def create_ledger_rows(history: History, count: int) -> None:
    """Create copies of a real row, sealed as the serving path seals them."""
    entry = LedgerEntry.objects.in_workspace(history.workspace).select_related("prompt", "version").last()
    assert entry is not None
    prompt_key, rows = get_prompt_key(entry.prompt), []
    for number in range(count):
        row = LedgerEntry(
            **{name: getattr(entry, name) for name in COPIED_COLUMNS},
            request_id=f"many-{number}",
            slots=entry.slots,
        )
        row.seal = build_ledger_row(row, prompt_key, entry.version.number).seal()
        rows.append(row)
    # Bypass the scoped manager, which would check the foreign keys of each row.
    plain: QuerySet[LedgerEntry] = QuerySet(LedgerEntry)
    plain.bulk_create(rows, batch_size=2_000)


COPIED_COLUMNS = (
    *("workspace_id", "key_id", "user_id", "reader_label", "prompt_id", "label", "version_id"),
    *("served_digest", "size", "status", "at"),
)


@pytest.mark.hard
def test_ten_thousand_rows_take_a_second_and_no_more_memory_than_one_chunk(history):
    create_ledger_rows(history, 6_000)
    # Best of three: other load on this machine must not fail the test.
    assert any(measure_rows_per_second(history) > 10_000 for _ in range(3))
    tracemalloc.start()
    try:
        verify_workspace(history.workspace)
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()
