"""The verify_evidence command: needs neither the database nor its settings."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from prompts.evidence.integrity.checkpoint_signer import get_public_key, sign_checkpoint
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.evidence.replay.evidence import build_evidence
from prompts.evidence.replay.services import replay_entry, replay_prompt_by_slugs
from prompts.proof.signing_keys import dump_public_key, generate_signing_key
from tests.prompts.evidence.integrity.history_stage import History
from tests.prompts.proof.proof_bundle import GOLDEN

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    """Cache of the evidence, which every test of the module can use."""
    return {}


@pytest.fixture
def evidence(kept: dict[str, Any], history: History, tmp_path: Path) -> Path:
    """Evidence file of a sealed and signed fetch."""
    if not kept:
        kept |= build_signed_evidence(history)
    return write_evidence(kept, tmp_path)


def build_signed_evidence(history: History) -> dict[str, Any]:
    [served] = history.serve(1)
    with time_machine.travel(timezone.now() + timedelta(minutes=5), tick=False):
        seal_ledger(history.workspace.pk)
        sign_checkpoint(history.workspace.pk)
    return build_evidence(replay_entry(history.workspace, served.ledger_id))


def write_evidence(data, folder: Path) -> Path:
    path = folder / "evidence.json"
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False), encoding="utf-8")
    return path


def get_exit_code(path: Path, *arguments: str) -> int:
    """Run the command and return its exit code."""
    try:
        call_command("verify_evidence", str(path), *arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except CommandError as error:
        return error.returncode
    raise AssertionError("It did not say how it ended.")


def test_complete_evidence_exits_with_0(evidence, capsys, tmp_path):
    key, pem = get_public_key()
    assert get_exit_code(evidence, "--key", key) == 0
    out = capsys.readouterr().out
    assert out.count("ok ") >= 16
    assert "FAILED" not in out
    assert "text rebuilt" in out
    (tmp_path / "key.pem").write_text(pem)
    assert get_exit_code(evidence, "--key", str(tmp_path / "key.pem")) == 0


def test_without_a_known_key_it_exits_with_3_and_says_so(evidence, capsys):
    assert get_exit_code(evidence) == 3
    assert "absent  key is the expected key" in capsys.readouterr().out


def test_another_key_ends_with_1(evidence, capsys, tmp_path):
    assert get_exit_code(evidence, "--key", "0" * 16) == 1
    (tmp_path / "other.pem").write_text(dump_public_key(generate_signing_key().public_key()))
    assert get_exit_code(evidence, "--key", str(tmp_path / "other.pem")) == 1
    assert "FAILED  key is the expected key" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("Be careful.", "Be careless.", "bytes match the served digest"),
        ('"layout": "dramatis"', '"layout": "opal"', "version hash"),
        ('"status": 200', '"status": 304', "ledger seal"),
        ('"label": "production"', '"label": "canary"', "ledger seal"),
        ('"last_id": ', '"last_id": 1', "block hash"),
        ('"is_whole": true', '"is_whole": false', "heads match the checkpoint"),
        ('"root": "', '"root": "0', "signature"),
    ],
)
def test_a_tampered_file_ends_with_1_and_the_check_is_named(evidence, capsys, old, new, named):
    text = evidence.read_text(encoding="utf-8")
    assert old in text
    evidence.write_text(text.replace(old, new), encoding="utf-8")
    assert get_exit_code(evidence, "--key", get_public_key()[0]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert any(named in line for line in failed), failed


def test_evidence_by_time_exits_with_0_too(history, tmp_path, capsys):
    replay = replay_prompt_by_slugs(history.workspace, "pilot", "deck", history.times["erasure"])
    assert get_exit_code(write_evidence(build_evidence(replay), tmp_path), "--key", get_public_key()[0]) == 0
    assert "“production” pointed to version 4" in capsys.readouterr().out


def test_erased_text_exits_with_3(history, tmp_path, capsys):
    replay = replay_entry(history.workspace, history.served[4].ledger_id)
    assert get_exit_code(write_evidence(build_evidence(replay), tmp_path), "--key", get_public_key()[0]) == 3
    assert "was erased" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"a": 1, "a": 2}', '{"a": 1.5}', "\x00"])
def test_a_file_without_evidence_exits_with_1(tmp_path, text):
    path = tmp_path / "evidence.json"
    path.write_text(text)
    assert get_exit_code(path) == 1
    assert get_exit_code(tmp_path / "not-there.json") == 1


def verify_without_database(
    path: Path, *arguments: str, cwd: Path = ROOT
) -> "subprocess.CompletedProcess[str]":
    """Run the command in a separate process without a reachable database."""
    environment = {
        "PATH": os.environ["PATH"],
        "DRAMATIS_ENV": "development",
        "DRAMATIS_VAR": str(path.parent / "var"),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "verify_evidence", str(path), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
        timeout=300,
    )


@pytest.mark.hard
def test_no_database_is_needed(evidence):
    process = verify_without_database(evidence, "--key", get_public_key()[0])
    assert process.returncode == 0, process.stdout + process.stderr
    assert "FAILED" not in process.stdout


def test_the_example_of_the_page_is_read_too(capsys):
    """The slots of the example are invented and cannot be filled; all other checks pass."""
    assert get_exit_code(GOLDEN, "--key", "56475aa75463474c") == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert [line.split("  ")[1].strip() for line in failed] == ["text rebuilt"]
