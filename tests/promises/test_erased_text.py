"""R17: erased text is in no byte of the installation, and cannot be guessed from a stored digest."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.project.backup.backup_stage import ROOT, empty_database, programs, restore
from tests.promises.cluster import cluster
from tests.promises.installation import migrated_database

CANARIES = ("Penhaligon keeps the code", "Rosamund Penhaligon", "823614")


class Erasure:
    """An installation in which a secret is served and erased, and the files in which it may be left."""

    def __init__(self, folder: Path, url: str, data: Path, fault: str = "", copies: int = 1) -> None:
        self.folder, self.url, self.data, self.fault = folder, url, data, fault
        # The number of records with the secret.
        self.copies = copies

    def run(self, step: str) -> dict[str, Any]:
        variables = {
            **os.environ,
            "DATABASE_URL": self.url,
            "DRAMATIS_VAR": str(self.folder / "var"),
            "DRAMATIS_POSTGRES_PROGRAMS": programs(),
        }
        scene = ["tests.promises.erasure_scene", step, str(self.folder), self.fault, str(self.copies)]
        command = [sys.executable, "-m", *scene]
        with (self.folder / f"{step}.log").open("wb") as log:
            done = subprocess.run(
                command, env=variables, stdout=subprocess.PIPE, stderr=log, check=False, timeout=300, cwd=ROOT
            )
        assert done.returncode == 0, (self.folder / f"{step}.log").read_text()[-3_000:]
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts

    def restore(self, url: str) -> None:
        """Restore the backup from before the erasure, with the journal of this installation."""
        variables = {"DRAMATIS_VAR": str(self.folder / "var")}
        backup = self.folder.parent / f"{self.folder.name}-before"
        done = restore(url, backup, self.folder / "var" / "checkpoints", **variables)
        assert done.returncode == 0, done.stderr
        assert f"erasures repeated: {self.copies + 1}" in done.stdout, done.stdout

    def list_files_with_text(self) -> list[str]:
        """List the files that contain a canary: database, write-ahead log, logs, backup and evidence."""
        paths = {*self.folder.rglob("*"), *self.data.rglob("*")}
        files = [path for path in paths if path.is_file() and path.name != "facts.json"]
        found = [path for path in files if any(text.encode() in path.read_bytes() for text in CANARIES)]
        return sorted({path.name for path in found})


@contextmanager
def open_installation(vendor: str, folder: Path, fault: str = "", copies: int = 1) -> Iterator[Erasure]:
    if vendor == "sqlite":
        with migrated_database(folder, "sqlite") as url:
            yield Erasure(folder, url, Path(url.removeprefix("sqlite:///")).parent, fault, copies)
        return
    # Without recycling, a checkpoint removes the segments of the write-ahead log that it no longer needs.
    with cluster("-c", "wal_recycle=off", "-c", "min_wal_size=32MB") as instance:
        instance.load_tables()
        yield Erasure(folder, instance.url, instance.directory, fault, copies)


def drop_old_log(erasure: Erasure) -> None:
    """End the segments of PostgreSQL's write-ahead log that hold the text, and remove them."""

    if erasure.url.startswith("sqlite"):
        return
    with psycopg.connect(erasure.url, autocommit=True) as connection:
        for _ in range(2):
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")


@pytest.mark.promise("R17")
@pytest.mark.hard
@pytest.mark.parametrize(
    ("vendor", "copies"), [("postgresql", 1), ("postgresql", 5), ("sqlite", 2), ("sqlite", 5)]
)
def test_erased_text_is_in_no_byte_and_cannot_be_guessed(vendor, copies, tmp_path, record_property):
    with open_installation(vendor, tmp_path, copies=copies) as erasure:
        served = erasure.run("serve")
        assert served["rows"] >= 4
        assert erasure.list_files_with_text(), "the text was in no file before, so the test proves nothing"
        erased = erasure.run("erase")
        assert erased.pop("tombstoned") >= 2
        assert erased == {
            "first": 200,
            "again": 410,
            "may_reuse": False,
            "refused": [410],
            "is_named": True,
            "is_kept": True,
        }
        drop_old_log(erasure)
        result = erasure.run("search")
        left = erasure.list_files_with_text()
    assert left == []
    assert (result["hits"], result["failed"], result["bad"]) == (0, [], "")
    assert result["guesses"] >= 1_000_000
    record_property(
        "measured",
        f"{vendor}, {copies} records with the text: its versions 410 after the first erasure, the others "
        f"named; 0 files with the text after the last; {result['guesses']:,} guesses over "
        f"{served['texts']} texts, 0 hits; a cached version is asked for again, and 410",
    )


@pytest.mark.promise("R17")
@pytest.mark.hard
def test_an_older_backup_restored_does_not_bring_it_back(tmp_path, record_property):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with open_installation("sqlite", first, copies=2) as erasure:
        erasure.run("serve")
        erasure.run("erase")
        with empty_database(second, "sqlite") as url:
            erasure.restore(url)
            restored = Erasure(second, url, second)
            left = restored.list_files_with_text()
    assert left == []
    record_property("measured", "a backup from before the erasure restored: 0 files with the text")


@pytest.mark.promise("R17")
@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.parametrize("fault", ["plain-digests", "call-data", "immutable", "shared-content"])
def test_a_missing_guard_is_found(fault, tmp_path):
    with open_installation("sqlite", tmp_path, fault, copies=2) as erasure:
        erasure.run("serve")
        read = erasure.run("erase")
        if fault in ("immutable", "shared-content"):
            assert read["may_reuse"] if fault == "immutable" else 200 in read["refused"]
            return
        hits, files = erasure.run("search")["hits"], erasure.list_files_with_text()
    assert hits > 0 if fault == "plain-digests" else files != []
