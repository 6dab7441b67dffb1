"""R10: a backup made under load restores completely, and what ended after it has ended."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.project.backup.backup_stage import ROOT, Done, empty_database, programs, restore
from tests.promises.installation import migrated_database

VERSIONS, ROWS, MAX_SECONDS = 10_000, 100_000, 60.0
# The dump formats, and the environment that makes the product choose each.
NO_PROGRAMS = {"DRAMATIS_POSTGRES_PROGRAMS": "/nowhere"}
# Rows with missing references are rejected by the database, other differences by the digests.
ERRORS = ("do not match the backup", "violates foreign key constraint")
# After a restore: all texts, the key that lives, and nothing of what ended before or after the backup.
RESTORED = {"same": 200, "served": 200, "refused": ["revoked", "doomed"], "members": 1, "secret_in": []}
DUMP_FORMATS: dict[str, dict[str, dict[str, str]]] = {
    "postgresql": {"pg_dump": {}, "copy": NO_PROGRAMS},
    "sqlite": {"sqlite": {}},
}


class Installation:
    """A database with a long history, and its backups."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self._backups: dict[str, dict[str, Any]] = {}

    def backup(self, dump_format: str, variables: dict[str, str]) -> dict[str, Any]:
        """Make a backup under load, once per format; return its facts and folder."""
        if dump_format not in self._backups:
            facts = self.step("take", f"backup-{dump_format}", **variables)
            self._backups[dump_format] = facts | {"folder": self.folder / f"backup-{dump_format}"}
        return self._backups[dump_format]

    def end(self, checkpoints: Path) -> None:
        """End a key, a membership and a memory, and copy the folder with the journal of that."""
        self.step("end")
        shutil.copytree(self.folder / "var" / "checkpoints", checkpoints)

    def restore(self, url: str, backup: Path, checkpoints: Path) -> Done:
        """Restore with the keys of the installation: others are not trusted."""
        return restore(url, backup, checkpoints, DRAMATIS_VAR=str(self.folder / "var"))

    def step(self, *arguments: str, url: str = "", **variables: str) -> dict[str, Any]:
        environment = {
            **os.environ,
            "DATABASE_URL": url or self.url,
            "DRAMATIS_VAR": str(self.folder / "var"),
            "DRAMATIS_POSTGRES_PROGRAMS": programs(),
            **variables,
        }
        name, *more = arguments
        command = [sys.executable, "-m", "tests.promises.backup_scene", name, str(self.folder), *more]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def installation(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"installation-{request.param}")
    with migrated_database(folder, request.param) as url:
        installation = Installation(folder, url)
        built = installation.step("build", str(VERSIONS), str(ROWS))
        assert built["versions"] >= VERSIONS
        assert built["rows"] >= ROWS
        yield installation


@pytest.fixture
def vendor(installation) -> str:
    return "sqlite" if installation.url.startswith("sqlite") else "postgresql"


@pytest.mark.promise("R10")
@pytest.mark.hard
def test_a_backup_under_load_restores_completely(installation, vendor, tmp_path, record_property):
    for dump_format, variables in DUMP_FORMATS[vendor].items():
        installation.backup(dump_format, variables)
    for dump_format, variables in DUMP_FORMATS[vendor].items():
        backup = installation.backup(dump_format, variables)
        assert backup["troubles"] == []
        assert backup["meanwhile"]["fetches"] > 0, "nobody wrote while it was made"
        assert backup["meanwhile"]["edits"] > 0
        assert backup["form"] == dump_format
        took = restore_and_check(installation, vendor, backup, tmp_path / dump_format)
        put_off = backup["meanwhile"].pop("put off")
        wrote = sum(backup["meanwhile"].values())
        assert put_off <= wrote / 20, f"{put_off} writes timed out, {wrote} succeeded"
        record_property(
            "measured",
            f"{dump_format}: {backup['rows']:,} rows, {backup['size']:,} bytes taken in "
            f"{backup['seconds']:.1f} s while others wrote {wrote:,} times; "
            f"restored and proved in {took:.1f} s, 200 of 200 prompts equal, later endings applied",
        )
        assert took <= MAX_SECONDS


def restore_and_check(installation: Installation, vendor: str, backup: dict[str, Any], folder: Path) -> float:
    """Restore and verify a backup; return the seconds it took."""
    folder.mkdir()
    installation.end(folder / "checkpoints")
    with empty_database(folder, vendor) as url:
        began = time.monotonic()
        done = installation.restore(url, backup["folder"], folder / "checkpoints")
        took = time.monotonic() - began
        assert done.returncode == 0, done.stderr
        assert "200 sampled prompts are byte-for-byte identical" in done.stdout
        assert "harbour verified" in done.stdout
        facts = installation.step("check", url=url)
    assert facts == RESTORED
    return took


@pytest.mark.promise("R10")
@pytest.mark.hard
@pytest.mark.planted
def test_a_restore_that_does_not_apply_the_journal_is_noticed(installation, vendor, tmp_path):
    dump_format, variables = next(iter(DUMP_FORMATS[vendor].items()))
    backup = installation.backup(dump_format, variables)["folder"].name
    installation.end(tmp_path / "checkpoints")
    with empty_database(tmp_path, vendor) as url:
        installation.step("restore", backup, url=url, DRAMATIS_CHECKPOINT_DIR=str(tmp_path / "checkpoints"))
        facts = installation.step("check", url=url)
    assert facts["refused"] == ["revoked"]
    assert facts["members"] == 2
    assert {"served", "versions", "personas_memory.text"} <= set(facts["secret_in"])


@pytest.mark.promise("R10")
@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.parametrize("installation", ["postgresql"], indirect=True)
def test_a_backup_without_a_snapshot_is_rejected(installation, vendor, tmp_path):
    """PostgreSQL only: SQLite always copies the complete file."""
    backup = installation.step("take", "backup-torn", "no-snapshot", **NO_PROGRAMS)
    assert backup["meanwhile"]["fetches"] > 0
    with empty_database(tmp_path, vendor, migrated=True) as url:
        done = installation.restore(url, installation.folder / "backup-torn", tmp_path / "checkpoints")
    assert done.returncode == 1
    assert any(message in done.stderr for message in ERRORS), done.stderr


@pytest.mark.promise("R10")
@pytest.mark.hard
@pytest.mark.planted
def test_a_flipped_byte_in_a_backup_is_rejected(installation, vendor, tmp_path):
    dump_format, variables = next(iter(DUMP_FORMATS[vendor].items()))
    backup = tmp_path / "backup"
    shutil.copytree(installation.backup(dump_format, variables)["folder"], backup)
    [largest] = backup.glob("database.*")
    with largest.open("r+b") as file:
        file.seek(largest.stat().st_size // 3)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))
    with empty_database(tmp_path, vendor) as url:
        done = installation.restore(url, backup, tmp_path / "checkpoints")
    assert done.returncode == 1
    assert f"{largest.name} does not match the manifest" in done.stderr
