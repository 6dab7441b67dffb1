"""Golden hashes: a change of the hash functions would invalidate everything recorded before."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.salted_digests import combine_salts, salt_digest
from prompts.proof.canonical import build_digest_message, canonical_digest
from prompts.proof.checkpoints import format_checkpoint_line, read_signed_checkpoint, verify_signature
from prompts.proof.evidence import verify_evidence
from prompts.proof.hashed_rows import LOCKFILE_DOMAIN, SEGMENTS_DOMAIN, SIZES_DOMAIN, SLOTS_DOMAIN
from prompts.proof.signing_keys import get_key_id
from tests.isolation.architecture import find_impure_modules, list_pure_modules
from tests.prompts.proof.proof_bundle import GOLDEN, SLOT_VALUES, Case, fill
from tests.prompts.proof.proof_stage import KEY, block_of, let_go, move, served_row, version

DOCS = (Path(__file__).parents[3] / "docs" / "evidence.md").read_text(encoding="utf-8")
MOVE = "9972236b7b90d5f9db6614b567cf50e344d521e64c3d4b657dea6c4f704d7fee"
OURS = "56475aa75463474c"


def test_the_rows_have_the_hashes_they_always_had():
    first, row = version(1), served_row(1)
    block = block_of(1, [(row, row.seal())])
    assert first.hash("") == "c9f59534d2e49161cd7e70c546eca51857d6a24ff8b3c97f2b9efb42b72048fa"
    assert (
        version(2).hash(first.hash("")) == "ee4819db5c4c13cddc3ce4cf27c6c331d717babbbc91469b5264dfff80143448"
    )
    assert move(1).hash("") == MOVE
    assert row.seal() == "17fd027376d6afe63dfdef402437b560fc19a96d2e09733e76656f88ba207630"
    assert block.rows == "d49147058339d13bfa6716387bfee1d1478e81bb11c5b6cce26a072d5d6aae91"
    assert block.hash("") == "45d0727c7a91d2fc408a05ad10004da150410daf8eaeade6f96501e38e4848d5"
    assert let_go(block).hash("") == "077cfc36586d2aad5be044a6719951dc3fc07bda976f626a8ed8d3881f3c45ab"


def test_contents_have_the_digests_they_always_had():
    digests = {
        kind: canonical_digest(kind, SLOT_VALUES)[:16]
        for kind in (SLOTS_DOMAIN, SEGMENTS_DOMAIN, LOCKFILE_DOMAIN, SIZES_DOMAIN)
    }
    assert digests == {
        "slots": "ed4b80fa1439ecfa",
        "segments": "ac39108a1f69ff3c",
        "lockfile": "2e290dcaeda8747a",
        "sizes": "7c62e1f3b4162d60",
    }


def test_a_checkpoint_has_the_hash_and_signature_it_always_had():
    signed = Case().parts()["signed"][0]
    assert signed.hash == "808616a7b8559333c4641feb0ec34e9db37b05277e15aee0b3b3150562effad0"
    assert signed.signature.startswith("1YEUy9TsgAJbSgQNaL1cQTMsmipz87oIlMl3a+v5V1Lm/VxBeMV/+CBdnvTmVy2v")
    assert signed.key == get_key_id(KEY.public_key()) == OURS
    assert format_checkpoint_line(signed).startswith(
        '{"body":{"at":"2026-03-08T14:55:05.250000Z","expiries":{"hash":'
    )


def test_a_bundle_is_written_as_it_always_was():
    assert Case().bundle() == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_a_text_has_the_salted_digest_it_always_had():
    salts = ["0f" * 16, ""]
    assert combine_salts(salts) == "87d59bdaa26bc3bd7da8e7ba9bff6a8884516d333be2e54a18e32a339f809c1a"
    assert combine_salts(["", ""]) == ""
    assert (
        salt_digest("ab" * 32, salts[0]) == "a3cb12a26b417eb2765ac067c662ea5e7aa863b94fc0d3078f8c83396980ebb9"
    )
    assert salt_digest("ab" * 32, "") == "ab" * 32


def test_the_golden_bundle_still_verifies():
    data = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert {check.state for check in verify_evidence(data, fill=fill, expected_key=OURS)} == {"ok"}
    signed = {name: data["checkpoint"][name] for name in ("body", "signature", "key", "heads")}
    assert verify_signature(read_signed_checkpoint(signed), KEY.public_key())


# --- the documentation page on verification without this code ------------------------------------------


def test_the_page_shows_the_very_bytes_and_their_hash():
    message = build_digest_message("label-move", {"previous": "", "row": vars(move(1))})
    assert f"```text\n{message.decode()}\n```" in DOCS
    assert f"over these {len(message)} bytes" in DOCS
    assert MOVE in DOCS
    assert OURS in DOCS


@pytest.fixture
def script(tmp_path):
    [code] = re.findall(r"```python\n(.+?)```", DOCS, re.DOTALL)
    (tmp_path / "check.py").write_text(code, encoding="utf-8")
    return lambda file: subprocess.run(
        [sys.executable, "-I", "check.py", str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )


def test_the_page_checks_a_bundle_without_this_code(script, tmp_path):
    answer = script(GOLDEN)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "FAILED" not in answer.stdout
    signed = json.loads(GOLDEN.read_text(encoding="utf-8"))["checkpoint"]["body"]
    assert (tmp_path / "signed.bin").read_bytes() == build_digest_message("checkpoint", signed)


@pytest.mark.skipif(not shutil.which("openssl"), reason="OpenSSL is not there")
def test_the_page_leads_openssl_to_the_same_verdict(script, tmp_path):
    script(GOLDEN)
    [commands] = re.findall(r"```sh\n(openssl.+?)```", DOCS, re.DOTALL)
    answer = subprocess.run(
        ["sh", "-ec", commands], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "Signature Verified Successfully" in answer.stdout
    assert answer.stdout.endswith(f"{OURS}\n")


@pytest.mark.planted
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Iris", "Isis"),
        ('"key:4"', '"key:5"'),
        ('"first_id": 80', '"first_id": 81'),
        ("Saturday.", "Sunday."),
        ('"tools": null', '"tools": "[]"'),
    ],
)
def test_the_page_finds_a_spoiled_bundle(script, tmp_path, old, new):
    text = GOLDEN.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "spoiled.json").write_text(text.replace(old, new), encoding="utf-8")
    answer = script("spoiled.json")
    assert answer.returncode == 1
    assert "FAILED" in answer.stdout


# --- pure ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_proof_needs_no_framework():
    names = [name for name in list_pure_modules() if name.startswith("prompts.proof")]
    assert len(names) > 10
    assert not find_impure_modules(names)
