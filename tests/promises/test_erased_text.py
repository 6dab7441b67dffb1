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

    def __init__(self, folder: Path, url: str, data: Path, fault: str = "") -> None:
        self.folder, self.url, self.data, self.fault = folder, url, data, fault

    def run(self, step: str) -> dict[str, Any]:
        variables = {
            **os.environ,
            "DATABASE_URL": self.url,
            "DRAMATIS_VAR": str(self.folder / "var"),
            "DRAMATIS_POSTGRES_PROGRAMS": programs(),
        }
        command = [sys.executable, "-m", "tests.promises.erasure_scene", step, str(self.folder), self.fault]
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
        assert "erasures repeated: 2" in done.stdout, done.stdout

    def list_files_with_text(self) -> list[str]:
        """List the files that contain a canary: database, write-ahead log, logs, backup and evidence."""
        paths = {*self.folder.rglob("*"), *self.data.rglob("*")}
        files = [path for path in paths if path.is_file() and path.name != "facts.json"]
        found = [path for path in files if any(text.encode() in path.read_bytes() for text in CANARIES)]
        return sorted({path.name for path in found})


@contextmanager
def open_installation(vendor: str, folder: Path, fault: str = "") -> Iterator[Erasure]:
    if vendor == "sqlite":
        with migrated_database(folder, "sqlite") as url:
            yield Erasure(folder, url, Path(url.removeprefix("sqlite:///")).parent, fault)
        return
    # Without recycling, a checkpoint removes the segments of the write-ahead log that it no longer needs.
    with cluster("-c", "wal_recycle=off", "-c", "min_wal_size=32MB") as instance:
        instance.load_tables()
        yield Erasure(folder, instance.url, instance.directory, fault)


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
@pytest.mark.parametrize("vendor", ["postgresql", "sqlite"])
def test_erased_text_is_in_no_byte_and_cannot_be_guessed(vendor, tmp_path, record_property):
    with open_installation(vendor, tmp_path) as erasure:
        served = erasure.run("serve")
        assert served["rows"] >= 4
        assert erasure.list_files_with_text(), "the text was in no file before, so the test proves nothing"
        assert erasure.run("erase") == {"first": 200, "again": 410, "may_reuse": False}
        drop_old_log(erasure)
        result = erasure.run("search")
        left = erasure.list_files_with_text()
    assert left == []
    assert (result["hits"], result["failed"], result["bad"]) == (0, [], "")
    assert result["guesses"] >= 1_000_000
    record_property(
        "measured",
        f"{vendor}: 0 files with the text; {result['guesses']:,} guesses over {served['texts']} texts, "
        "0 hits; a cached version is asked for again, and 410",
    )


@pytest.mark.promise("R17")
@pytest.mark.hard
def test_an_older_backup_restored_does_not_bring_it_back(tmp_path, record_property):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with open_installation("sqlite", first) as erasure:
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
@pytest.mark.parametrize("fault", ["plain-digests", "call-data", "immutable"])
def test_a_missing_guard_is_found(fault, tmp_path):
    with open_installation("sqlite", tmp_path, fault) as erasure:
        erasure.run("serve")
        read = erasure.run("erase")
        if fault == "immutable":
            assert read["may_reuse"]
            return
        hits, files = erasure.run("search")["hits"], erasure.list_files_with_text()
    assert hits > 0 if fault == "plain-digests" else files != []
