"""Checkpoints are signed, chained and copied to a file; none without changes; valid after key rotation."""

import json
import stat

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import transaction

from prompts.evidence.integrity import checkpoint_signer
from prompts.evidence.integrity.checkpoint_files import get_checkpoint_path, read_checkpoint_copies
from prompts.evidence.integrity.checkpoint_signer import (
    NoSigningKey,
    get_current_heads,
    get_heads_at,
    get_public_key,
    load_signing_key,
    sign_checkpoint,
    write_checkpoint_copies,
)
from prompts.evidence.integrity.verify import verify_workspace
from prompts.models import Checkpoint, LedgerEntry, SigningKey
from prompts.proof.checkpoints import SignedCheckpoint, read_checkpoint, verify_signature
from prompts.proof.signing_keys import dump_private_key, generate_signing_key, get_key_id, load_public_key
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.prompts.evidence.integrity.history_stage import History

pytestmark = pytest.mark.django_db


def stored(history: History) -> list[Checkpoint]:
    return list(Checkpoint.objects.in_workspace(history.workspace).order_by("sequence"))


def lines(history: History) -> list[str]:
    return get_checkpoint_path(history.workspace.pk).read_text(encoding="utf-8").splitlines()


# --- content -------------------------------------------------------------------------------------------


def test_checkpoints_are_chained_and_signed(history):
    rows = stored(history)
    assert [row.sequence for row in rows] == [1, 2, 3, 4]
    assert [row.previous_hash for row in rows] == ["", *(row.hash for row in rows[:-1])]
    key = load_public_key(SigningKey.objects.in_workspace(history.workspace).get().public_key)
    for row in rows:
        assert verify_signature(SignedCheckpoint(row.body, row.signature, row.key_id), key)
        assert read_checkpoint(row.body).at == row.at


def test_a_checkpoint_sums_up_where_every_chain_ends(history):
    # The rows of the last minute are in no block. The history was created once, for all tests here.
    newest = LedgerEntry.objects.in_workspace(history.workspace).latest("pk")
    with time_machine.travel(newest.at, tick=False):
        row = sign_checkpoint(history.workspace.pk)
    assert row is not None
    heads = get_current_heads(history.workspace.pk)
    assert get_heads_at(row) == heads
    assert read_checkpoint(row.body).matches_heads(heads)
    assert row.body["versions"]["count"] == 15
    assert row.body["label_moves"]["count"] == 18
    assert (row.body["ledger"]["sequence"], row.body["expiries"]["sequence"]) == (3, 1)


def test_only_changed_heads_are_stored(history):
    rows = stored(history)
    assert [row.heads["is_whole"] for row in rows] == [True, False, False, False]
    first = sign_checkpoint(history.workspace.pk)
    assert first is not None
    history.reword("Be quick.")
    second = sign_checkpoint(history.workspace.pk)
    assert second is not None
    assert len(second.heads["versions"]) == 3
    assert get_heads_at(second) == get_current_heads(history.workspace.pk)


@pytest.mark.slow
def test_all_heads_are_stored_at_intervals(history, monkeypatch):
    monkeypatch.setattr(checkpoint_signer, "FULL_HEADS_INTERVAL", 2)
    sign_checkpoint(history.workspace.pk)
    history.reword("Be quick.")
    sign_checkpoint(history.workspace.pk)
    assert [row.heads["is_whole"] for row in stored(history)][-2:] == [True, False]
    assert get_heads_at(stored(history)[-1]) == get_current_heads(history.workspace.pk)
    assert verify_workspace(history.workspace).is_sound


def test_nothing_is_signed_when_nothing_changed(history, elsewhere):
    assert sign_checkpoint(history.workspace.pk) is not None
    assert sign_checkpoint(history.workspace.pk) is None
    assert len(stored(history)) == 5
    assert sign_checkpoint(elsewhere.pk) is None
    assert not get_checkpoint_path(elsewhere.pk).exists() or not get_checkpoint_path(elsewhere.pk).read_text()


# --- file copy -----------------------------------------------------------------------------------------


def test_the_folder_has_every_checkpoint_and_the_public_key(history):
    copies = list(read_checkpoint_copies(history.workspace.pk))
    assert [copy.hash for copy in copies if isinstance(copy, SignedCheckpoint)] == [
        row.hash for row in stored(history)
    ]
    key, pem = get_public_key()
    assert (get_checkpoint_path(history.workspace.pk).parent / f"{key}.pem").read_text() == pem


def test_a_copy_that_is_behind_catches_up(history):
    path = get_checkpoint_path(history.workspace.pk)
    complete = path.read_text()
    path.write_text("\n".join(lines(history)[:2]) + "\n")
    assert write_checkpoint_copies(history.workspace.pk) == 2
    assert path.read_text() == complete
    assert write_checkpoint_copies(history.workspace.pk) == 0
    path.unlink()
    assert write_checkpoint_copies(history.workspace.pk) == 4
    assert path.read_text() == complete


def test_a_line_that_a_crash_cut_off_is_written_again(history):
    path = get_checkpoint_path(history.workspace.pk)
    complete = path.read_bytes()
    path.write_bytes(complete[:-40])
    assert write_checkpoint_copies(history.workspace.pk) == 1
    assert path.read_bytes() == complete


def test_an_unwritable_folder_loses_only_the_copy(history, settings, tmp_path):
    (tmp_path / "taken").write_text("a file, and no folder")
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "taken"
    assert sign_checkpoint(history.workspace.pk) is not None
    assert len(stored(history)) == 5


def test_a_diverged_file_is_reported_and_not_overwritten(history):
    with unguarded():
        by_hand("DELETE FROM prompts_checkpoint WHERE sequence = 4")
        history.reword("Be quick.")
        assert sign_checkpoint(history.workspace.pk) is not None
        assert len(lines(history)) == 5
        reasons = {fault.reason for fault in verify_workspace(history.workspace).faults}
        assert "it is in the file but not in the database" in reasons


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda lines: lines[:-1], "it is in the database but not in the file"),
        (lambda lines: lines[1:], "it is in the database but not in the file"),
        (
            lambda lines: [lines[0], lines[2], lines[1], lines[3]],
            "it does not follow the previous checkpoint",
        ),
        (lambda lines: [*lines[:3], lines[3].replace('"count":', '"count":1')], "signature is not valid"),
        (lambda lines: ["{", *lines], "it cannot be read"),
    ],
)
def test_changes_to_the_file_are_found(history, spoil, message):
    get_checkpoint_path(history.workspace.pk).write_text("\n".join(spoil(lines(history))) + "\n")
    faults = verify_workspace(history.workspace).faults
    assert any(message in fault.reason for fault in faults), [str(fault) for fault in faults]


def test_without_a_file_the_rest_is_verified_and_a_note_says_so(history):
    get_checkpoint_path(history.workspace.pk).unlink()
    verification = verify_workspace(history.workspace)
    assert verification.is_sound
    assert verification.notes == ["There is no second copy of the checkpoints on this machine."]


def test_a_copy_within_the_grace_period_is_not_reported(history):
    with transaction.atomic():
        checkpoint_signer.create_checkpoint(history.workspace.pk, load_signing_key())
    assert len(lines(history)) == 4
    assert verify_workspace(history.workspace).is_sound


# --- keys ----------------------------------------------------------------------------------------------


def test_old_signatures_stay_valid_after_key_rotation(history, settings):
    old, other = stored(history)[-1].key_id, generate_signing_key()
    settings.DRAMATIS_SIGNING_KEY = dump_private_key(other).decode()
    checkpoint = sign_checkpoint(history.workspace.pk)
    assert checkpoint is not None
    assert checkpoint.key_id == get_key_id(other.public_key()) != old
    assert not verify_workspace(history.workspace).is_sound, "the old key is not named as trusted"
    settings.DRAMATIS_TRUSTED_KEYS = f"{checkpoint.key_id}, {old}"
    assert verify_workspace(history.workspace).is_sound
    assert {row.key_id for row in SigningKey.objects.in_workspace(history.workspace)} == {
        old,
        checkpoint.key_id,
    }
    assert len(list(get_checkpoint_path(history.workspace.pk).parent.glob("*.pem"))) == 2


def test_a_checkpoint_signed_with_an_unknown_key_is_found(history):
    with unguarded():
        by_hand("DELETE FROM prompts_signingkey")
        assert "signed with an unknown key" in str(verify_workspace(history.workspace).first)


def test_the_development_key_is_created_once_for_the_owner_only(settings, tmp_path):
    settings.DRAMATIS_SIGNING_KEY, settings.VAR = "", tmp_path / "new"
    first = dump_private_key(load_signing_key())
    assert dump_private_key(load_signing_key()) == first
    path = tmp_path / "new" / "signing_key.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["signing_key.pem"]


@pytest.mark.parametrize("line_separator", ["\n", "\\n"])
def test_a_key_is_given_as_pem_or_path(settings, tmp_path, line_separator):
    key = generate_signing_key()
    pem = dump_private_key(key).decode()
    settings.DRAMATIS_SIGNING_KEY = pem.strip().replace("\n", line_separator)
    assert dump_private_key(load_signing_key()) == dump_private_key(key)
    (tmp_path / "key.pem").write_text(pem)
    settings.DRAMATIS_SIGNING_KEY = str(tmp_path / "key.pem")
    assert dump_private_key(load_signing_key()) == dump_private_key(key)


@pytest.mark.parametrize("setting", ["/nowhere/at/all.pem", "-----BEGIN nonsense-----", __file__])
def test_an_unusable_key_is_rejected_without_printing_it(history, settings, setting):
    settings.DRAMATIS_SIGNING_KEY = setting
    with pytest.raises(NoSigningKey) as caught:
        sign_checkpoint(history.workspace.pk)
    assert "nonsense" not in caught.value.message
    assert len(stored(history)) == 4
    with pytest.raises(CommandError, match=r"signing key|SIGNING_KEY"):
        call_command("sign_checkpoint")


# --- commands ------------------------------------------------------------------------------------------


def test_the_command_signs_and_prints_the_result(history, capsys):
    call_command("sign_checkpoint", history.workspace.slug)
    assert "checkpoint 5, signed with" in capsys.readouterr().out
    call_command("sign_checkpoint", history.workspace.slug)
    assert "no changes since the last checkpoint" in capsys.readouterr().out
    with pytest.raises(CommandError, match="Workspace “nowhere” not found"):
        call_command("sign_checkpoint", "nowhere")


def test_the_public_key_is_printed(capsys):
    call_command("signing_key")
    key = capsys.readouterr().out.strip()
    call_command("signing_key", "--public")
    assert get_key_id(load_public_key(capsys.readouterr().out)) == key == get_public_key()[0]
    call_command("signing_key", "--new")
    assert "PRIVATE KEY" in capsys.readouterr().out


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_copy_that_is_not_written_is_found(history, monkeypatch):
    monkeypatch.setattr(checkpoint_signer, "append_checkpoints", lambda *args: 0)
    with pytest.raises(AssertionError):
        test_a_copy_that_is_behind_catches_up(history)


@pytest.mark.planted
def test_a_checkpoint_that_forgets_label_moves_is_found(history, monkeypatch):
    from prompts.proof.chain_heads import ChainHeads

    real = checkpoint_signer.get_current_heads
    monkeypatch.setattr(checkpoint_signer, "get_current_heads", lambda pk: ChainHeads(real(pk).versions))
    with pytest.raises(AssertionError):
        test_a_checkpoint_sums_up_where_every_chain_ends(history)


def test_lines_are_json_that_others_can_read(history):
    for line in lines(history):
        assert set(json.loads(line)) == {"body", "heads", "key", "signature"}
