"""Only trusted keys count, and a copy from elsewhere shows a rewrite with the own key."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from project.doctor.checks import check_settings
from project.doctor.record import check_record
from project.doctor.results import FindingState
from prompts.evidence.integrity.checkpoint_files import get_checkpoint_path
from prompts.evidence.integrity.checkpoint_signer import (
    NoSigningKey,
    get_public_key,
    load_signing_key,
    sign_checkpoint,
)
from prompts.evidence.integrity.trusted_keys import find_trust_fault, get_trusted_keys
from prompts.evidence.integrity.verify import checkpoint_verifier, verify_workspace
from prompts.models import Checkpoint
from prompts.proof.checkpoints import format_checkpoint_line, read_checkpoint_lines, sign_statement
from prompts.proof.checkpoints import read_checkpoint as parse_checkpoint
from prompts.proof.signing_keys import (
    UnusableKey,
    dump_private_key,
    dump_public_key,
    generate_signing_key,
    get_key_id,
    parse_trusted_keys,
)
from tests.prompts.evidence.integrity.forged_history import (
    by_hand,
    rehash_versions,
    rewrite_everything,
    unguarded,
)
from tests.prompts.evidence.integrity.history_stage import History

pytestmark = pytest.mark.django_db


def verify(*arguments: Any) -> int:
    """Run the command and return its exit code."""
    try:
        call_command("verify_chain", *map(str, arguments))
    except SystemExit as ended:
        return int(str(ended.code))
    return 0


@pytest.fixture
def copy(history: History, tmp_path: Path) -> Path:
    """A copy of the checkpoint folder that was taken before."""
    return Path(shutil.copytree(get_checkpoint_path(history.workspace.pk).parent, tmp_path / "elsewhere"))


def record_states() -> set[FindingState]:
    return {finding.state for full in (False, True) for finding in check_record(full=full)}


# --- trusted keys --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("R18")
@pytest.mark.promise("R9", "a rewrite with a foreign key")
def test_a_rewrite_with_a_foreign_key_is_found(history, capsys):
    assert (verify(), FindingState.FAIL in record_states()) == (0, False)
    with unguarded():
        rewrite_everything(history, generate_signing_key())
        assert verify() == 1
        assert "not one of the trusted keys" in capsys.readouterr().out
        faults = verify_workspace(history.workspace).faults
        assert any("signed with an unknown key" in fault.reason for fault in faults)
        for full in (False, True):
            assert FindingState.FAIL in {finding.state for finding in check_record(full=full)}


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.promise("R18")
def test_a_verification_that_trusts_any_key_is_found(history, capsys, monkeypatch):
    monkeypatch.setattr(checkpoint_verifier, "find_trust_fault", lambda *_: "")
    with pytest.raises(AssertionError):
        test_a_rewrite_with_a_foreign_key_is_found(history, capsys)


def test_a_public_key_is_pinned_whole(history, settings):
    """The id is only a part of the digest of a key."""
    key_id, pem = get_public_key()
    settings.DRAMATIS_TRUSTED_KEYS = pem.replace("\n", "\\n")
    assert verify_workspace(history.workspace).is_sound
    other = generate_signing_key().public_key()
    assert find_trust_fault({key_id: other}, key_id, load_signing_key().public_key())
    settings.DRAMATIS_TRUSTED_KEYS = dump_public_key(other)
    assert not verify_workspace(history.workspace).is_sound


def test_trusted_keys_are_ids_and_public_keys_in_any_order():
    first, second = (generate_signing_key().public_key() for _ in range(2))
    text = f"{get_key_id(first)},\n{dump_public_key(second)} 0123456789abcdef"
    assert parse_trusted_keys(text) == {
        get_key_id(first): None,
        get_key_id(second): second,
        "0123456789abcdef": None,
    }
    for wrong in ("0123", "0123456789abcdeg", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"):
        with pytest.raises(UnusableKey):
            parse_trusted_keys(wrong)


def test_without_the_private_key_everything_is_verified_and_nothing_signed(history, settings):
    key_id, _ = get_public_key()
    settings.PRODUCTION, settings.DRAMATIS_SIGNING_KEY = True, ""
    with pytest.raises(NoSigningKey):
        get_trusted_keys()
    settings.DRAMATIS_TRUSTED_KEYS = key_id
    assert verify_workspace(history.workspace).is_sound
    with pytest.raises(NoSigningKey, match="no signing key"):
        sign_checkpoint(history.workspace.pk)
    assert not (settings.VAR / "new").exists()


def test_an_unusable_list_of_trusted_keys_is_an_error(history, settings):
    settings.DRAMATIS_TRUSTED_KEYS = "all of them"
    with pytest.raises(CommandError, match="DRAMATIS_TRUSTED_KEYS cannot be used"):
        call_command("verify_chain")
    assert FindingState.FAIL in {finding.state for finding in check_settings()}


def test_the_doctor_reports_a_signing_key_that_is_not_trusted(settings):
    settings.DRAMATIS_TRUSTED_KEYS = "0123456789abcdef"
    [finding] = [finding for finding in check_settings() if finding.name == "signing key"]
    assert finding.state == FindingState.FAIL
    assert get_public_key()[0] in finding.message


def test_the_doctor_accepts_that_another_process_signs(settings):
    settings.PRODUCTION, settings.DRAMATIS_SIGNING_KEY = True, ""
    settings.DRAMATIS_TRUSTED_KEYS = "0123456789abcdef"
    [finding] = [finding for finding in check_settings() if finding.name == "signing key"]
    assert finding.state == FindingState.OK
    assert "0123456789abcdef" in finding.message


# --- a copy from elsewhere -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("R18")
def test_a_rewrite_with_the_own_key_is_found_against_a_copy(history, copy, capsys):
    """Whoever has the private key can sign another history: only a copy from elsewhere shows that."""
    assert verify("--against", copy) == 0
    with unguarded():
        rewrite_everything(history, load_signing_key())
        assert verify() == 0
        capsys.readouterr()
        for path in (copy, copy / f"{history.workspace.pk}.jsonl"):
            assert verify("--against", path) == 1
            printed = capsys.readouterr().out
            assert "it is in the external copy but not in the database" in printed
            assert "was rewritten after the checkpoint" in printed


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.promise("R18")
def test_a_comparison_that_skips_the_copy_is_found(history, copy, capsys, monkeypatch):
    monkeypatch.setattr(
        checkpoint_verifier.CheckpointVerifier, "verify_outside_copy", lambda *_: iter([None])
    )
    with pytest.raises(AssertionError):
        test_a_rewrite_with_the_own_key_is_found_against_a_copy(history, copy, capsys)


@pytest.mark.slow
@pytest.mark.promise("R18")
def test_a_rewrite_without_any_key_is_found(history, copy):
    with unguarded():
        by_hand("UPDATE prompts_promptversion SET message = 'Never said'")
        rehash_versions(history)
        assert (verify(), verify("--against", copy)) == (1, 1)


@pytest.mark.slow
@pytest.mark.promise("R18")
def test_replaced_files_are_found(history, copy):
    """Files that were signed with another key, in place of those on this machine or elsewhere."""
    path, mallory = get_checkpoint_path(history.workspace.pk), generate_signing_key()
    forged = "".join(
        format_checkpoint_line(sign_statement(parse_checkpoint(one.body), mallory))
        for one in read_checkpoint_lines(path.read_text().splitlines())
        if not hasattr(one, "reason")
    )
    path.write_text(forged)
    assert verify() == 1
    assert verify("--against", path) == 1
    path.unlink()
    assert (verify(), verify("--against", path.parent)) == (0, 0)
    assert verify("--against", copy) == 0


def test_a_database_of_an_older_backup_is_found(history, copy, capsys):
    with unguarded():
        by_hand("DELETE FROM prompts_checkpoint WHERE sequence = 4")
        get_checkpoint_path(history.workspace.pk).unlink()
        assert (verify(), verify("--against", copy)) == (0, 1)


@pytest.mark.slow
def test_a_copy_may_be_behind_and_lack_a_workspace(history, elsewhere, copy, capsys):
    history.reword("Be quick.")
    sign_checkpoint(history.workspace.pk)
    assert verify("--against", copy) == 0
    assert "The external copy has no checkpoint of this workspace." in capsys.readouterr().out
    assert verify(history.workspace.slug, "--against", copy, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report[history.workspace.slug]["rows"]["external checkpoint copies"] == 4


def test_checkpoints_of_a_workspace_that_is_gone_are_reported(history, copy, capsys):
    line = (copy / f"{history.workspace.pk}.jsonl").read_text().splitlines()[0]
    statement = parse_checkpoint(json.loads(line)["body"] | {"workspace": 999_999})
    signed = sign_statement(statement, load_signing_key())
    (copy / "999999.jsonl").write_text(format_checkpoint_line(signed))
    assert verify("--against", copy) == 1
    assert "not in the database: 999999" in capsys.readouterr().err
    assert verify(history.workspace.slug, "--against", copy) == 0


def test_an_unreadable_copy_is_an_error(history, copy, tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        call_command("verify_chain", "--against", str(tmp_path / "missing.jsonl"))
    (copy / f"{history.workspace.pk}.jsonl").write_text("{\n")
    assert verify("--against", copy) == 1


def test_rotation_keeps_old_signatures_valid(history, settings, copy):
    """As documented: first trust both keys, then sign with the new one."""
    old, new = get_public_key()[0], generate_signing_key()
    settings.DRAMATIS_TRUSTED_KEYS = f"{old},{get_key_id(new.public_key())}"
    settings.DRAMATIS_SIGNING_KEY = dump_private_key(new).decode()
    assert sign_checkpoint(history.workspace.pk) is not None
    assert {row.key_id for row in Checkpoint.objects.in_workspace(history.workspace)} == {
        old,
        get_key_id(new.public_key()),
    }
    assert verify("--against", copy) == 0
    settings.DRAMATIS_TRUSTED_KEYS = get_key_id(new.public_key())
    assert verify() == 1
