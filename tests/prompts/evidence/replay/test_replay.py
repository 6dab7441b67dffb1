"""Replay: served text is reproduced to the byte, or an error explains why not."""

import json
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from prompts.assembly import slots as slot_rendering
from prompts.assembly.slots import PreviousError, Session, Slots, StepInput, TaskInput
from prompts.errors import FetchNotFound, LedgerRowExpired, NoPromptAtTime, PromptErased, ReplayMismatch
from prompts.evidence.integrity.checkpoint_signer import get_public_key, sign_checkpoint
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.evidence.replay import services as replay_services
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.services import (
    build_replay,
    list_request_entries,
    replay_entry,
    replay_prompt_by_slugs,
)
from prompts.models import LabelMove, LedgerEntry, PromptVersion
from prompts.proof.evidence import is_evidence_valid
from prompts.proof.evidence_reader import NOT_YET_SEALED
from prompts.publishing.labels.services import move_label, remove_label
from prompts.serving.slot_values import slots_from_json
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.prompts.evidence.integrity.history_stage import SECRET, History

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def list_checks_by_state(data) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {"ok": [], "failed": [], "absent": []}
    for check in run_evidence_checks(json.loads(json.dumps(data)), get_public_key()[0]):
        names[check.state].append(check.name)
    return names


def fetch_prompt(history: History, **options):
    [served] = history.serve(1, **options)
    return served


# --- by ledger row -------------------------------------------------------------------------------------


def test_a_fetch_is_replayed_to_the_byte(history):
    served = fetch_prompt(history)
    replay = replay_entry(history.workspace, served.ledger_id)
    assert replay.text == served.text
    assert replay.digest == served.served_digest
    assert replay.recorded_digest == replay.salted_digest == served.row.served
    assert replay.is_exact
    replay.require_exact()


def test_later_edits_change_nothing_of_it(history):
    served = fetch_prompt(history, label="latest")
    history.reword("Be something else.")
    assert fetch_prompt(history, label="latest").text != served.text
    assert replay_entry(history.workspace, served.ledger_id).text == served.text


def test_a_replay_includes_all_slots_of_the_call(history):
    facts = Slots(
        now=timezone.now(),
        timezone="Europe/Lisbon",
        zone="WET",
        host={"os": "Linux", "load": 0.5, "cores": 8},
        session=Session("s-1", "/plans/one.md"),
        task=TaskInput(7, "Paint the hull", "Red", "open", (StepInput("Sand", True), StepInput("Paint"))),
        is_background=True,
        previous_error=PreviousError("Timeout", "It took too long"),
        append="And mind the paint — häufig.",
    )
    served = fetch_prompt(history, slots=facts)
    replay = replay_entry(history.workspace, served.ledger_id)
    assert replay.text == served.text
    assert "mind the paint" in replay.text
    assert replay.is_exact


def test_where_each_line_came_from_is_known(history):
    replay = replay_entry(history.workspace, fetch_prompt(history).ledger_id)
    kinds = {segment.origin.kind for segment in replay.segments}
    assert {"soul", "layout"} <= kinds
    assert "".join(segment.text for segment in replay.segments) == replay.text


def test_a_304_fetch_is_replayed_with_the_clients_text(history):
    served = fetch_prompt(history)
    again = fetch_prompt(history, known=served.digest)
    assert (again.status, again.text) == (304, "")
    replay = replay_entry(history.workspace, again.ledger_id)
    assert replay.is_exact
    assert replay.text


def test_a_request_is_found_by_its_id(history):
    served = fetch_prompt(history)
    [entry] = list_request_entries(history.workspace, served.request_id)
    assert build_replay(entry).text == served.text


def test_what_was_never_served_here_is_unknown(history, elsewhere):
    served = fetch_prompt(history)
    for workspace, number in ((history.workspace, 10**9), (elsewhere, served.ledger_id), (elsewhere, 2**70)):
        with pytest.raises(FetchNotFound):
            replay_entry(workspace, number)
    for workspace, request in ((history.workspace, "never"), (elsewhere, served.request_id)):
        with pytest.raises(FetchNotFound):
            list_request_entries(workspace, request)


def test_an_expired_row_is_reported_with_its_date(history):
    gone = history.served[0].ledger_id
    with pytest.raises(
        LedgerRowExpired, match=r"was deleted on \d{4}-\d\d-\d\d, after the retention period of 6 months"
    ):
        replay_entry(history.workspace, gone)
    with pytest.raises(FetchNotFound, match="older than 6 months were deleted"):
        list_request_entries(history.workspace, history.served[0].request_id)


def test_erased_text_is_not_replayed_and_the_erasure_is_named(history):
    served = history.served[4]
    assert SECRET in served.text
    replay = replay_entry(history.workspace, served.ledger_id)
    assert replay.is_erased
    assert not replay.is_exact
    assert "flowerpot" not in replay.text
    with pytest.raises(PromptErased, match=r"memory \d+ on \d{4}-\d\d-\d\d: She asked for it"):
        replay.require_exact()


def test_other_bytes_than_were_recorded_are_loud(history):
    served = fetch_prompt(history)
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET served_digest = %s WHERE id = %s", "0" * 64, served.ledger_id)
        replay = replay_entry(history.workspace, served.ledger_id)
        assert not replay.is_exact
        with pytest.raises(ReplayMismatch, match="does not match the recorded digest"):
            replay.require_exact()
        assert "bytes match the served digest" in list_checks_by_state(build_evidence(replay))["absent"]
        assert "ledger seal" in list_checks_by_state(build_evidence(replay))["failed"]


def test_a_slot_that_cannot_be_filled_is_reported_and_raises_nothing(history, monkeypatch):
    served = fetch_prompt(history)
    monkeypatch.setattr(slot_rendering, "SLOT_RENDERERS", {})
    replay = replay_entry(history.workspace, served.ledger_id)
    assert "can no longer be filled" in replay.problem
    with pytest.raises(ReplayMismatch):
        replay.require_exact()


@pytest.mark.planted
def test_a_replay_that_ignores_the_digest_is_detected(history, monkeypatch):
    monkeypatch.setattr(replay_services.Replay, "is_exact", True)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_other_bytes_than_were_recorded_are_loud(history)


@pytest.mark.planted
def test_a_replay_that_forgets_a_fact_of_the_call_is_found(history, monkeypatch):
    monkeypatch.setattr(
        replay_services, "slots_from_json", lambda data: slots_from_json({**data, "append": ""})
    )
    with pytest.raises(AssertionError):
        test_a_replay_includes_all_slots_of_the_call(history)


# --- by time -------------------------------------------------------------------------------------------


def get_number_at(history: History, at, label="production", channel="deck") -> int:
    return replay_prompt_by_slugs(history.workspace, "pilot", channel, at, label).version.number


def test_the_version_of_a_label_at_a_time_is_found(history):
    times = history.times
    assert get_number_at(history, times["beginning"]) == 1
    assert get_number_at(history, times["secret"] - SECOND) == 1
    assert get_number_at(history, times["secret"]) == 2
    # Rolled back at the same time as the third version was built.
    assert get_number_at(history, times["moves"]) == 2
    assert get_number_at(history, times["moves"], "latest") == 3
    assert get_number_at(history, times["moves"] - SECOND, "latest") == 2


def test_at_any_time_the_label_matches_its_moves(history):
    """Compare the replay at times around every move with a plain computation from the moves."""
    prompt = history.prompt()
    moves = list(LabelMove.objects.in_workspace(history.workspace).filter(prompt=prompt, label="production"))
    for timestamp in {move.at + step for move in moves for step in (-SECOND, 0 * SECOND, SECOND)}:
        before = [move for move in moves if move.at <= timestamp]
        if not before or timestamp > timezone.now():
            continue
        last = max(before, key=lambda move: move.sequence)
        assert last.version is not None
        assert get_number_at(history, timestamp) == last.version.number


def test_a_time_before_the_first_version_is_rejected_with_its_date(history):
    for label in ("production", "latest"):
        with pytest.raises(NoPromptAtTime, match="the first version was built on"):
            get_number_at(history, history.times["beginning"] - SECOND, label)
    with pytest.raises(NoPromptAtTime, match="never had a label"):
        get_number_at(history, timezone.now(), "never-set")


def test_a_label_that_was_taken_off_pointed_at_nothing(history):
    prompt = history.prompt()
    version = prompt.versions.get(number=1)
    past = timezone.now() - timedelta(hours=2)
    with time_machine.travel(past, tick=False):
        move_label(prompt, "trial", version, expected=None, by=history.by)
    with time_machine.travel(past + 10 * SECOND, tick=False):
        remove_label(prompt, "trial", by=history.by)
    assert get_number_at(history, past + 5 * SECOND, "trial") == 1
    with pytest.raises(NoPromptAtTime, match="was removed"):
        get_number_at(history, past + 20 * SECOND, "trial")


def test_foreign_prompts_and_future_times_are_rejected(history, elsewhere):
    with pytest.raises(NoPromptAtTime):
        replay_prompt_by_slugs(elsewhere, "pilot", "deck", timezone.now())
    with pytest.raises(NoPromptAtTime):
        replay_prompt_by_slugs(history.workspace, "pilot", "moon", timezone.now())
    for timestamp in (timezone.now() + timedelta(minutes=1), timezone.now().replace(tzinfo=None)):
        with pytest.raises(NoPromptAtTime, match="in the past"):
            replay_prompt_by_slugs(history.workspace, "pilot", "deck", timestamp)


# --- evidence ------------------------------------------------------------------------------------------


def build_signed_evidence(history: History):
    served = fetch_prompt(history)
    with time_machine.travel(timezone.now() + timedelta(minutes=5), tick=False):
        seal_ledger(history.workspace.pk)
        sign_checkpoint(history.workspace.pk)
    return served


def test_evidence_of_a_fetch_proves_everything_once_it_is_sealed_and_signed(history):
    served = build_signed_evidence(history)
    data = build_evidence(replay_entry(history.workspace, served.ledger_id))
    assert data["text"] == served.text
    checks = list_checks_by_state(data)
    assert (checks["failed"], checks["absent"]) == ([], [])
    assert len(checks["ok"]) > 15


def test_evidence_leads_through_later_versions_and_blocks(history):
    served = fetch_prompt(history)
    with time_machine.travel(timezone.now() + timedelta(minutes=5), tick=False):
        seal_ledger(history.workspace.pk)
        history.reword("Be later.")
        history.serve(2)
    assert served.number == 4
    with time_machine.travel(timezone.now() + timedelta(minutes=10), tick=False):
        seal_ledger(history.workspace.pk)
        sign_checkpoint(history.workspace.pk)
    data = build_evidence(replay_entry(history.workspace, served.ledger_id))
    assert (len(data["versions"]), len(data["block"]["links"])) == (3, 2)
    assert list_checks_by_state(data)["failed"] == list_checks_by_state(data)["absent"] == []


def test_evidence_by_time_proves_where_the_label_pointed(history):
    for name in ("beginning", "erasure"):
        for label in ("production", "latest"):
            data = build_evidence(
                replay_prompt_by_slugs(history.workspace, "pilot", "deck", history.times[name], label)
            )
            assert list_checks_by_state(data)["failed"] == list_checks_by_state(data)["absent"] == [], (
                name,
                label,
            )
            assert data["ledger"] is None


def test_what_is_not_sealed_or_signed_yet_is_reported_as_absent(history):
    data = build_evidence(replay_entry(history.workspace, fetch_prompt(history).ledger_id))
    assert data["block"] == NOT_YET_SEALED
    assert "seal is in its block" in list_checks_by_state(data)["absent"]
    assert list_checks_by_state(data)["failed"] == []
    now = build_evidence(replay_prompt_by_slugs(history.workspace, "pilot", "deck", timezone.now()))
    assert "label pointed to the version" in list_checks_by_state(now)["absent"]
    assert list_checks_by_state(now)["failed"] == []


def test_evidence_of_erased_text_keeps_the_digests_and_no_text(history):
    data = build_evidence(replay_entry(history.workspace, history.served[4].ledger_id))
    assert "flowerpot" not in json.dumps(data)
    assert data["text"] is None
    checks = list_checks_by_state(data)
    assert checks["failed"] == []
    assert {"ledger seal", "version hash", "signature"} <= set(checks["ok"])


def test_evidence_contains_nothing_of_other_workspaces(history, elsewhere):
    data = json.dumps(
        build_evidence(replay_entry(history.workspace, build_signed_evidence(history).ledger_id))
    )
    assert "Elsewhere" not in data
    assert json.loads(data)["checkpoint"]["body"]["workspace"] == history.workspace.pk


def test_a_row_changed_behind_the_product_makes_the_evidence_fail(history):
    served = build_signed_evidence(history)
    with unguarded():
        version = LedgerEntry.objects.in_workspace(history.workspace).get(pk=served.ledger_id).version_id
        PromptVersion.objects.in_workspace(history.workspace).filter(pk=version).update(author_label="Nobody")
        data = build_evidence(replay_entry(history.workspace, served.ledger_id))
        assert "version hash" in list_checks_by_state(data)["failed"]
        assert not is_evidence_valid(run_evidence_checks(data, None))


# --- the command ---------------------------------------------------------------------------------------


def run_replay_command(capfdbinary, *arguments: str) -> tuple[bytes, str]:
    call_command("replay", *arguments)
    out, err = capfdbinary.readouterr()
    return out, err.decode()


def test_the_command_prints_the_very_bytes(history, capfdbinary, tmp_path):
    served = fetch_prompt(history)
    for arguments in (["--ledger", str(served.ledger_id)], ["--request", served.request_id]):
        out, err = run_replay_command(capfdbinary, history.workspace.slug, *arguments)
        assert out == served.text.encode()
        assert served.served_digest in err
    evidence = tmp_path / "evidence.json"
    out, err = run_replay_command(
        capfdbinary, *("--ledger", str(served.ledger_id), "--evidence", str(evidence), history.workspace.slug)
    )
    assert json.loads(evidence.read_text())["served"] == served.row.served


def test_the_command_replays_a_time(history, capfdbinary):
    at = history.times["beginning"].isoformat()
    arguments = ["--agent", "pilot", "--channel", "deck", "--at", at]
    out, err = run_replay_command(capfdbinary, history.workspace.slug, *arguments)
    assert b"Be brave." in out
    assert "version 1, production" in err
    naive = history.times["erasure"].replace(tzinfo=None).isoformat()
    out, _ = run_replay_command(
        capfdbinary, history.workspace.slug, *arguments[:-1], naive, "--label", "latest"
    )
    assert b"Be careful." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Pass --ledger"),
        (["--ledger", "999999999"], "The ledger has no row 999999999"),
        (["--request", "never"], "No fetch has the request ID"),
        (["--agent", "pilot"], "Pass --ledger"),
        (["--agent", "pilot", "--channel", "deck", "--at", "soon"], "not a time"),
        (["--agent", "pilot", "--channel", "deck", "--at", "2019-01-01T00:00:00Z"], "did not exist yet"),
        (["--agent", "pilot", "--channel", "deck", "--at", "2999-01-01"], "a time in the past"),
    ],
)
def test_the_command_says_what_is_wrong(history, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("replay", history.workspace.slug, *arguments)


def test_the_command_asks_for_the_workspace_where_there_are_several(history, elsewhere):
    with pytest.raises(CommandError, match="Pass the workspace slug"):
        call_command("replay", "--ledger", "1")
    with pytest.raises(CommandError, match="Workspace “nowhere” not found"):
        call_command("replay", "nowhere", "--ledger", "1")
    with pytest.raises(CommandError, match="The ledger has no row"):
        call_command("replay", elsewhere.slug, "--ledger", str(history.served[-1].ledger_id))


def test_a_request_for_many_prompts_leaves_the_choice(history):
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET request_id = 'batch'")
        with pytest.raises(
            CommandError, match=r"9 prompts were served to that request\. Choose one:\s+--ledger"
        ):
            call_command("replay", history.workspace.slug, "--request", "batch")
