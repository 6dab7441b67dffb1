"""R10: a backup made under load is a consistent snapshot and restores completely."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.project.backup.backup_stage import ROOT, empty_database, programs, restore
from tests.promises.installation import migrated_database

VERSIONS, ROWS, LONGEST = 10_000, 100_000, 60.0
# The dump formats, and the environment that makes the product choose each.
NO_PROGRAMS = {"DRAMATIS_POSTGRES_PROGRAMS": "/nowhere"}
# Rows with missing references are rejected by the database, other differences by the digests.
CAUGHT = ("not what was taken", "violates foreign key constraint")
WAYS: dict[str, dict[str, dict[str, str]]] = {
    "postgresql": {"pg_dump": {}, "copy": NO_PROGRAMS},
    "sqlite": {"sqlite": {}},
}


class House:
    """A database with a long history, and its backups."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self._taken: dict[str, dict[str, Any]] = {}

    def taken(self, way: str, variables: dict[str, str]) -> dict[str, Any]:
        """Make a backup under load, once per format; return its facts and folder."""
        if way not in self._taken:
            said = self.step("take", f"backup-{way}", **variables)
            self._taken[way] = said | {"folder": self.folder / f"backup-{way}"}
        return self._taken[way]

    def step(self, *words: str, url: str = "", **variables: str) -> dict[str, Any]:
        told = {
            **os.environ,
            "DATABASE_URL": url or self.url,
            "DRAMATIS_VAR": str(self.folder / "var"),
            "DRAMATIS_POSTGRES_PROGRAMS": programs(),
            **variables,
        }
        name, *more = words
        command = [sys.executable, "-m", "tests.promises.backup_scene", name, str(self.folder), *more]
        done = subprocess.run(
            command, env=told, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def house(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"house-{request.param}")
    with migrated_database(folder, request.param) as url:
        house = House(folder, url)
        built = house.step("build", str(VERSIONS), str(ROWS))
        assert built["versions"] >= VERSIONS
        assert built["rows"] >= ROWS
        yield house


@pytest.fixture
def vendor(house) -> str:
    return "sqlite" if house.url.startswith("sqlite") else "postgresql"


@pytest.mark.promise("R10")
@pytest.mark.hard
def test_a_backup_under_load_comes_back_whole(house, vendor, tmp_path, record_property):
    for way, variables in WAYS[vendor].items():
        taken = house.taken(way, variables)
        assert taken["troubles"] == []
        assert taken["meanwhile"]["fetches"] > 0, "nobody wrote while it was made"
        assert taken["meanwhile"]["edits"] > 0
        assert taken["form"] == way
        took = come_back_whole(house, vendor, taken, tmp_path / way)
        wrote = sum(taken["meanwhile"].values())
        record_property(
            "measured",
            f"{way}: {taken['rows']:,} rows, {taken['size']:,} bytes taken in {taken['seconds']:.1f} s while "
            f"others wrote {wrote:,} times; restored and proved in {took:.1f} s, 200 of 200 prompts equal",
        )
        assert took <= LONGEST


def come_back_whole(house: House, vendor: str, taken: dict[str, Any], folder: Path) -> float:
    """Restore and verify a backup; return the seconds it took."""
    folder.mkdir()
    with empty_database(folder, vendor) as url:
        began = time.monotonic()
        done = restore(url, taken["folder"], folder / "checkpoints")
        took = time.monotonic() - began
        assert done.returncode == 0, done.stderr
        assert "200 sampled prompts are the same to the byte" in done.stdout
        assert "The record of harbour holds" in done.stdout
        found = house.step("check", url=url)
    assert found == {"same": 200, "refused": True, "served": 200}
    return took


@pytest.mark.promise("R10")
@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.parametrize("house", ["postgresql"], indirect=True)
def test_a_backup_without_one_moment_is_caught_under_load(house, vendor, tmp_path):
    """PostgreSQL only: SQLite always copies the complete file."""
    taken = house.step("take", "backup-torn", "no-moment", **NO_PROGRAMS)
    assert taken["meanwhile"]["fetches"] > 0
    with empty_database(tmp_path, vendor, migrated=True) as url:
        done = restore(url, house.folder / "backup-torn", tmp_path / "checkpoints")
    assert done.returncode == 1
    assert any(words in done.stderr for words in CAUGHT), done.stderr


@pytest.mark.promise("R10")
@pytest.mark.hard
@pytest.mark.planted
def test_a_flipped_byte_in_a_long_backup_is_refused(house, vendor, tmp_path):
    way, variables = next(iter(WAYS[vendor].items()))
    backup = tmp_path / "backup"
    shutil.copytree(house.taken(way, variables)["folder"], backup)
    [largest] = backup.glob("database.*")
    with largest.open("r+b") as file:
        file.seek(largest.stat().st_size // 3)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))
    with empty_database(tmp_path, vendor) as url:
        done = restore(url, backup, tmp_path / "checkpoints")
    assert done.returncode == 1
    assert f"{largest.name} is not what was written" in done.stderr
