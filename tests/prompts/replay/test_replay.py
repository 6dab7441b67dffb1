"""What was told is told again to the byte, or it is said loudly why not."""

import json
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from personas.errors import InvalidInput
from prompts.assembly import slots as slot_rendering
from prompts.assembly.slots import PreviousError, Session, Slots, Step, Task
from prompts.errors import FetchNotFound, LedgerRowExpired, NoPromptAtTime, PromptErased, ReplayMismatch
from prompts.integrity.checkpoints import get_public_key, sign_checkpoint
from prompts.labels.services import move_label, remove_label
from prompts.ledger.blocks import seal_ledger
from prompts.models import LabelMove, LedgerEntry, PromptVersion
from prompts.proof.evidence import is_evidence_valid
from prompts.proof.evidence_reader import NOT_YET_SEALED
from prompts.replay import services as replay_services
from prompts.replay.evidence import build_evidence, run_evidence_checks
from prompts.replay.services import build_replay, list_request_entries, replay_entry, replay_prompt_by_slugs
from prompts.serving import slots_from_json
from tests.prompts.integrity.forged_history import by_hand, unguarded
from tests.prompts.integrity.history_stage import SECRET, History

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def states(data) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"ok": [], "failed": [], "absent": []}
    for check in run_evidence_checks(json.loads(json.dumps(data)), get_public_key()[0]):
        found[check.state].append(check.name)
    return found


def fresh(history: History, **asked):
    [served] = history.serve(1, **asked)
    return served


# --- by the ledger -------------------------------------------------------------------------------------


def test_a_fetch_is_given_again_to_the_byte(history):
    served = fresh(history)
    replay = replay_entry(history.workspace, served.ledger_id)
    assert replay.text == served.text
    assert replay.digest == served.served_digest == replay.recorded
    assert replay.is_exact
    replay.refuse_other()


def test_later_edits_change_nothing_of_it(history):
    served = fresh(history, label="latest")
    history.reword("Be something else.")
    assert fresh(history, label="latest").text != served.text
    assert replay_entry(history.workspace, served.ledger_id).text == served.text


def test_all_that_a_call_brought_is_in_it_again(history):
    facts = Slots(
        now=timezone.now(),
        timezone="Europe/Lisbon",
        zone="WET",
        host={"os": "Linux", "load": 0.5, "cores": 8},
        session=Session("s-1", "/plans/one.md"),
        task=Task(7, "Paint the hull", "Red", "open", (Step("Sand", True), Step("Paint"))),
        is_background=True,
        previous_error=PreviousError("Timeout", "It took too long"),
        append="And mind the paint — häufig.",
    )
    served = fresh(history, slots=facts)
    replay = replay_entry(history.workspace, served.ledger_id)
    assert replay.text == served.text
    assert "mind the paint" in replay.text
    assert replay.is_exact


def test_where_each_line_came_from_is_known(history):
    replay = replay_entry(history.workspace, fresh(history).ledger_id)
    kinds = {segment.origin.kind for segment in replay.segments}
    assert {"soul", "layout"} <= kinds
    assert "".join(segment.text for segment in replay.segments) == replay.text


def test_a_fetch_that_brought_no_words_is_given_with_those_the_caller_had(history):
    served = fresh(history)
    again = fresh(history, known=served.digest)
    assert (again.status, again.text) == (304, "")
    replay = replay_entry(history.workspace, again.ledger_id)
    assert replay.is_exact
    assert replay.text


def test_a_request_is_found_by_its_id(history):
    served = fresh(history)
    [entry] = list_request_entries(history.workspace, served.request_id)
    assert build_replay(entry).text == served.text


def test_what_was_never_handed_out_here_is_unknown(history, elsewhere):
    served = fresh(history)
    for workspace, number in ((history.workspace, 10**9), (elsewhere, served.ledger_id), (elsewhere, 2**70)):
        with pytest.raises(FetchNotFound):
            replay_entry(workspace, number)
    for workspace, request in ((history.workspace, "never"), (elsewhere, served.request_id)):
        with pytest.raises(FetchNotFound):
            list_request_entries(workspace, request)


def test_a_row_that_rolled_off_is_said_to_be_gone_and_since_when(history):
    gone = history.served[0].ledger_id
    with pytest.raises(
        LedgerRowExpired, match=r"was let go on \d{4}-\d\d-\d\d: the ledger was kept for 6 months"
    ):
        replay_entry(history.workspace, gone)
    with pytest.raises(FetchNotFound, match="older than 6 months were let go"):
        list_request_entries(history.workspace, history.served[0].request_id)


def test_erased_words_are_not_given_again_and_the_erasure_is_named(history):
    held = history.served[4]
    assert SECRET in held.text
    replay = replay_entry(history.workspace, held.ledger_id)
    assert replay.is_erased
    assert not replay.is_exact
    assert "flowerpot" not in replay.text
    with pytest.raises(PromptErased, match=r"memory \d+ on \d{4}-\d\d-\d\d: She asked for it"):
        replay.refuse_other()


def test_other_bytes_than_were_recorded_are_loud(history):
    served = fresh(history)
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET served_digest = %s WHERE id = %s", "0" * 64, served.ledger_id)
        replay = replay_entry(history.workspace, served.ledger_id)
        assert not replay.is_exact
        with pytest.raises(ReplayMismatch, match="NOT the bytes that were recorded"):
            replay.refuse_other()
        assert "bytes match the served digest" in states(build_evidence(replay))["absent"]
        assert "ledger seal" in states(build_evidence(replay))["failed"]


def test_a_slot_that_cannot_be_filled_any_more_is_told_and_raises_nothing(history, monkeypatch):
    served = fresh(history)
    monkeypatch.setattr(slot_rendering, "SLOT_RENDERERS", {})
    replay = replay_entry(history.workspace, served.ledger_id)
    assert "cannot be filled any more" in replay.problem
    with pytest.raises(ReplayMismatch):
        replay.refuse_other()


@pytest.mark.planted
def test_a_replay_that_does_not_look_at_the_digest_is_found(history, monkeypatch):
    monkeypatch.setattr(replay_services.Replay, "is_exact", True)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_other_bytes_than_were_recorded_are_loud(history)


@pytest.mark.planted
def test_a_replay_that_forgets_a_fact_of_the_call_is_found(history, monkeypatch):
    monkeypatch.setattr(
        replay_services, "slots_from_json", lambda data: slots_from_json({**data, "append": ""})
    )
    with pytest.raises(AssertionError):
        test_all_that_a_call_brought_is_in_it_again(history)


# --- by a moment ---------------------------------------------------------------------------------------


def number_then(history: History, at, label="production", channel="deck") -> int:
    return replay_prompt_by_slugs(history.workspace, "pilot", channel, at, label).version.number


def test_what_a_label_pointed_at_in_a_moment_is_found(history):
    moments = history.times
    assert number_then(history, moments["beginning"]) == 1
    assert number_then(history, moments["secret"] - SECOND) == 1
    assert number_then(history, moments["secret"]) == 2
    # Rolled back in the same moment in which the third was built.
    assert number_then(history, moments["moves"]) == 2
    assert number_then(history, moments["moves"], "latest") == 3
    assert number_then(history, moments["moves"] - SECOND, "latest") == 2


def test_at_any_moment_it_is_what_the_moves_tell(history):
    """Asked for every moment around every move, against the plain history of the moves."""
    prompt = history.prompt()
    moves = list(LabelMove.objects.in_workspace(history.workspace).filter(prompt=prompt, label="production"))
    for moment in {move.at + step for move in moves for step in (-SECOND, 0 * SECOND, SECOND)}:
        before = [move for move in moves if move.at <= moment]
        if not before or moment > timezone.now():
            continue
        last = max(before, key=lambda move: move.sequence)
        assert last.version is not None
        assert number_then(history, moment) == last.version.number


def test_a_moment_before_the_first_version_is_refused_with_its_date(history):
    for label in ("production", "latest"):
        with pytest.raises(NoPromptAtTime, match="the first version was built on"):
            number_then(history, history.times["beginning"] - SECOND, label)
    with pytest.raises(NoPromptAtTime, match="pointed at nothing yet"):
        number_then(history, timezone.now(), "never-set")


def test_a_label_that_was_taken_off_pointed_at_nothing(history):
    prompt = history.prompt()
    version = prompt.versions.get(number=1)
    past = timezone.now() - timedelta(hours=2)
    with time_machine.travel(past, tick=False):
        move_label(prompt, "trial", version, expected=None, by=history.by)
    with time_machine.travel(past + 10 * SECOND, tick=False):
        remove_label(prompt, "trial", by=history.by)
    assert number_then(history, past + 5 * SECOND, "trial") == 1
    with pytest.raises(NoPromptAtTime, match="was taken off"):
        number_then(history, past + 20 * SECOND, "trial")


def test_strangers_prompts_and_moments_to_come_are_refused(history, elsewhere):
    with pytest.raises(NoPromptAtTime):
        replay_prompt_by_slugs(elsewhere, "pilot", "deck", timezone.now())
    with pytest.raises(NoPromptAtTime):
        replay_prompt_by_slugs(history.workspace, "pilot", "moon", timezone.now())
    for moment in (timezone.now() + timedelta(minutes=1), timezone.now().replace(tzinfo=None)):
        with pytest.raises(InvalidInput):
            replay_prompt_by_slugs(history.workspace, "pilot", "deck", moment)


# --- evidence ------------------------------------------------------------------------------------------


def sealed_and_signed(history: History):
    served = fresh(history)
    with time_machine.travel(timezone.now() + timedelta(minutes=5), tick=False):
        seal_ledger(history.workspace.pk)
        sign_checkpoint(history.workspace.pk)
    return served


def test_evidence_of_a_fetch_proves_everything_once_it_is_sealed_and_signed(history):
    served = sealed_and_signed(history)
    data = build_evidence(replay_entry(history.workspace, served.ledger_id))
    assert data["text"] == served.text
    found = states(data)
    assert (found["failed"], found["absent"]) == ([], [])
    assert len(found["ok"]) > 15


def test_evidence_leads_through_later_versions_and_blocks(history):
    served = fresh(history)
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
    assert states(data)["failed"] == states(data)["absent"] == []


def test_evidence_of_a_moment_proves_where_the_label_stood(history):
    for name in ("beginning", "erasure"):
        for label in ("production", "latest"):
            data = build_evidence(
                replay_prompt_by_slugs(history.workspace, "pilot", "deck", history.times[name], label)
            )
            assert states(data)["failed"] == states(data)["absent"] == [], (name, label)
            assert data["ledger"] is None


def test_what_is_not_sealed_or_signed_yet_is_said_to_be_absent(history):
    data = build_evidence(replay_entry(history.workspace, fresh(history).ledger_id))
    assert data["block"] == NOT_YET_SEALED
    assert "seal stands in its block" in states(data)["absent"]
    assert states(data)["failed"] == []
    now = build_evidence(replay_prompt_by_slugs(history.workspace, "pilot", "deck", timezone.now()))
    assert "label pointed at the version" in states(now)["absent"]
    assert states(now)["failed"] == []


def test_evidence_of_erased_words_keeps_the_digests_and_none_of_the_words(history):
    data = build_evidence(replay_entry(history.workspace, history.served[4].ledger_id))
    assert "flowerpot" not in json.dumps(data)
    assert data["text"] is None
    found = states(data)
    assert found["failed"] == []
    assert {"ledger seal", "version hash", "signature"} <= set(found["ok"])


def test_evidence_holds_nothing_of_other_workspaces(history, elsewhere):
    data = json.dumps(build_evidence(replay_entry(history.workspace, sealed_and_signed(history).ledger_id)))
    assert "Elsewhere" not in data
    assert json.loads(data)["checkpoint"]["body"]["workspace"] == history.workspace.pk


def test_a_row_changed_behind_the_product_makes_the_evidence_fail(history):
    served = sealed_and_signed(history)
    with unguarded():
        version = LedgerEntry.objects.in_workspace(history.workspace).get(pk=served.ledger_id).version_id
        PromptVersion.objects.in_workspace(history.workspace).filter(pk=version).update(author_label="Nobody")
        data = build_evidence(replay_entry(history.workspace, served.ledger_id))
        assert "version hash" in states(data)["failed"]
        assert not is_evidence_valid(run_evidence_checks(data, None))


# --- the command ---------------------------------------------------------------------------------------


def printed(capfdbinary, *words: str) -> tuple[bytes, str]:
    call_command("replay", *words)
    out, err = capfdbinary.readouterr()
    return out, err.decode()


def test_the_command_prints_the_very_bytes(history, capfdbinary, tmp_path):
    served = fresh(history)
    for words in (["--ledger", str(served.ledger_id)], ["--request", served.request_id]):
        out, err = printed(capfdbinary, history.workspace.slug, *words)
        assert out == served.text.encode()
        assert served.served_digest in err
    evidence = tmp_path / "evidence.json"
    out, err = printed(
        capfdbinary, *("--ledger", str(served.ledger_id), "--evidence", str(evidence), history.workspace.slug)
    )
    assert json.loads(evidence.read_text())["served"] == served.served_digest


def test_the_command_finds_a_moment(history, capfdbinary):
    at = history.times["beginning"].isoformat()
    words = ["--agent", "pilot", "--channel", "deck", "--at", at]
    out, err = printed(capfdbinary, history.workspace.slug, *words)
    assert b"Be brave." in out
    assert "version 1, production" in err
    naive = history.times["erasure"].replace(tzinfo=None).isoformat()
    out, _ = printed(capfdbinary, history.workspace.slug, *words[:-1], naive, "--label", "latest")
    assert b"Be careful." in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name a --ledger row"),
        (["--ledger", "999999999"], "There is no row 999999999"),
        (["--request", "never"], "Nothing was handed out"),
        (["--agent", "pilot"], "Name a --ledger row"),
        (["--agent", "pilot", "--channel", "deck", "--at", "soon"], "not a moment"),
        (["--agent", "pilot", "--channel", "deck", "--at", "2019-01-01T00:00:00Z"], "pointed at nothing yet"),
        (["--agent", "pilot", "--channel", "deck", "--at", "2999-01-01"], "a moment that has passed"),
    ],
)
def test_the_command_says_what_is_wrong(history, words, said):
    with pytest.raises(CommandError, match=said):
        call_command("replay", history.workspace.slug, *words)


def test_the_command_asks_for_the_workspace_where_there_are_several(history, elsewhere):
    with pytest.raises(CommandError, match="Name the workspace"):
        call_command("replay", "--ledger", "1")
    with pytest.raises(CommandError, match="no workspace “nowhere”"):
        call_command("replay", "nowhere", "--ledger", "1")
    with pytest.raises(CommandError, match="There is no row"):
        call_command("replay", elsewhere.slug, "--ledger", str(history.served[-1].ledger_id))


def test_a_request_for_many_prompts_leaves_the_choice(history):
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET request_id = 'batch'")
        with pytest.raises(CommandError, match=r"handed 9 prompts\. Name one:\s+--ledger"):
            call_command("replay", history.workspace.slug, "--request", "batch")
