"""An evidence file is checked by someone who has this code, and neither the database nor its settings."""

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

from prompts.integrity.checkpoints import get_public_key, sign_checkpoint
from prompts.ledger.blocks import seal_ledger
from prompts.proof.signing_keys import dump_public_key, generate_signing_key
from prompts.replay.evidence import build_evidence
from prompts.replay.services import replay_entry, replay_prompt_by_slugs
from tests.prompts.integrity.history_stage import History
from tests.prompts.proof.proof_bundle import GOLDEN

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    """Evidence stands by itself: what was written once serves every test of the module."""
    return {}


@pytest.fixture
def evidence(kept: dict[str, Any], history: History, tmp_path: Path) -> Path:
    """Of a fetch that is sealed and signed."""
    if not kept:
        kept |= sealed_and_signed(history)
    return written(kept, tmp_path)


def sealed_and_signed(history: History) -> dict[str, Any]:
    [served] = history.serve(1)
    with time_machine.travel(timezone.now() + timedelta(minutes=5), tick=False):
        seal_ledger(history.workspace.pk)
        sign_checkpoint(history.workspace.pk)
    return build_evidence(replay_entry(history.workspace, served.ledger_id))


def written(data, folder: Path) -> Path:
    path = folder / "evidence.json"
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False), encoding="utf-8")
    return path


def code_of(path: Path, *words: str) -> int:
    """As a shell would get it."""
    try:
        call_command("verify_evidence", str(path), *words)
    except SystemExit as end:
        return int(end.code or 0)
    except CommandError as error:
        return error.returncode
    raise AssertionError("It did not say how it ended.")


def test_what_is_wholly_proved_ends_with_0(evidence, capsys, tmp_path):
    key, pem = get_public_key()
    assert code_of(evidence, "--key", key) == 0
    out = capsys.readouterr().out
    assert out.count("ok ") >= 16
    assert "FAILED" not in out
    assert "text built again" in out
    (tmp_path / "key.pem").write_text(pem)
    assert code_of(evidence, "--key", str(tmp_path / "key.pem")) == 0


def test_without_a_known_key_it_ends_with_3_and_says_so(evidence, capsys):
    assert code_of(evidence) == 3
    assert "absent  key is the expected one" in capsys.readouterr().out


def test_another_key_ends_with_1(evidence, capsys, tmp_path):
    assert code_of(evidence, "--key", "0" * 16) == 1
    (tmp_path / "other.pem").write_text(dump_public_key(generate_signing_key().public_key()))
    assert code_of(evidence, "--key", str(tmp_path / "other.pem")) == 1
    assert "FAILED  key is the expected one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("Be careful.", "Be careless.", "bytes match the served digest"),
        ('"author": "dramatis"', '"author": "mallory"', "version hash"),
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
    assert code_of(evidence, "--key", get_public_key()[0]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert any(named in line for line in failed), failed


def test_evidence_of_a_moment_is_wholly_proved_too(history, tmp_path, capsys):
    replay = replay_prompt_by_slugs(history.workspace, "pilot", "deck", history.times["erasure"])
    assert code_of(written(build_evidence(replay), tmp_path), "--key", get_public_key()[0]) == 0
    assert "“production” pointed at version 4" in capsys.readouterr().out


def test_erased_words_end_with_3(history, tmp_path, capsys):
    replay = replay_entry(history.workspace, history.served[4].ledger_id)
    assert code_of(written(build_evidence(replay), tmp_path), "--key", get_public_key()[0]) == 3
    assert "were erased" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"a": 1, "a": 2}', '{"a": 1.5}', "\x00"])
def test_what_is_no_evidence_ends_with_1(tmp_path, text):
    path = tmp_path / "evidence.json"
    path.write_text(text)
    assert code_of(path) == 1
    assert code_of(tmp_path / "not-there.json") == 1


def by_a_stranger(path: Path, *words: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, whose database is not there."""
    environment = {
        "PATH": os.environ["PATH"],
        "DRAMATIS_ENV": "development",
        "DRAMATIS_VAR": str(path.parent / "var"),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "verify_evidence", str(path), *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
        timeout=120,
    )


@pytest.mark.hard
def test_no_database_is_needed(evidence):
    answer = by_a_stranger(evidence, "--key", get_public_key()[0])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "FAILED" not in answer.stdout


def test_the_example_of_the_page_is_read_too(capsys):
    """Its slots are made up, and no layout of ours fills them; all else stands."""
    assert code_of(GOLDEN, "--key", "56475aa75463474c") == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert [line.split("  ")[1].strip() for line in failed] == ["text built again"]
