"""Backup and restore: consistent snapshot, atomic creation, rejected if modified, verified when restored."""

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.utils import timezone

from project.backup import create as backup_create
from project.backup import pg_dump, postgres_copy, sqlite
from project.backup.checksums import list_applied_migrations
from project.backup.create import create_backup
from project.backup.errors import BackupError
from project.backup.manifest import MANIFEST_NAME, read_manifest
from project.backup.restore import restore_backup
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.ledger.partitions import (
    LEDGER_TABLE,
    build_month_partition,
    create_month_partition,
    drop_empty_partitions,
    get_month_start,
)
from tests.database_cleanup import empty
from tests.factories import signed_in
from tests.project.backup.backup_stage import answer, empty_database, programs, restore
from tests.prompts.serving.serving_stage import insert_rows, make_stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ROWS = "SELECT count(*) FROM prompts_ledgerentry"
PLACES = "SELECT string_agg(DISTINCT tableoid::regclass::text, ' ') FROM prompts_ledgerentry"
TABLES = "SELECT 1 + count(*) FROM pg_class WHERE relispartition AND relkind = 'r'"
GUARDS = "SELECT count(*) FROM pg_trigger WHERE tgname = 'prompts_ledgerentry_only_grows'"
IS_POSTGRES = connection.vendor == "postgresql"


@pytest.fixture
def stage(workspace, settings, tmp_path):
    """Return a workspace with versions, fetches and a checkpoint with its copy on disk."""
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    settings.DRAMATIS_POSTGRES_PROGRAMS = programs()
    stage = make_stage(workspace)
    for text in ("Be wise.", "Be calm.", "Be “careful”: \\N and \t tabs, ünïcode, $1."):
        stage.edit(text)
        stage.fetch()
    sign_checkpoint(workspace.pk)
    return stage


@pytest.fixture
def by_copy(settings, tmp_path):
    """Simulate a machine without pg_dump and pg_restore."""
    settings.DRAMATIS_POSTGRES_PROGRAMS = str(tmp_path)


def meanwhile(action: Callable[[], object]) -> None:
    """Run the action in another thread, and wait for it."""

    def run() -> None:
        try:
            action()
        finally:
            connections.close_all()

    other = threading.Thread(target=run)
    other.start()
    other.join(60)


def busy_dump(stage, monkeypatch) -> None:
    """Fetch a prompt after the dump and before the rows are counted."""
    part, name = (postgres_copy, "dump_postgres_tables") if IS_POSTGRES else (sqlite, "dump_sqlite")
    real = getattr(part, name)

    def dump(folder: Path) -> object:
        details = real(folder)
        meanwhile(stage.fetch)
        return details

    monkeypatch.setattr(part, name, dump)


# --- backup and restore --------------------------------------------------------------------------------


def test_a_backup_is_restored_whole_and_proved(stage, tmp_path):
    signed_in(make_owner(stage))
    manifest = create_backup(tmp_path / "backup")
    assert manifest.database["form"] == ("pg_dump" if IS_POSTGRES else "sqlite")
    with empty_database(tmp_path) as url:
        done = restore(url, tmp_path / "backup", tmp_path / "elsewhere")
        assert done.returncode == 0, done.stderr
        assert f"{stage.prompt.last_number} sampled prompts are byte-for-byte identical" in done.stdout
        assert f"{stage.workspace.slug} verified" in done.stdout
        assert answer(url, ROWS) == len(stage.rows)
        assert answer(url, "SELECT count(*) FROM django_session") == 0
    assert (tmp_path / "elsewhere" / f"{stage.workspace.pk}.jsonl").read_bytes() == (
        tmp_path / "checkpoints" / f"{stage.workspace.pk}.jsonl"
    ).read_bytes()


@pytest.mark.hard
def test_what_is_written_meanwhile_is_not_in_it(stage, tmp_path, by_copy, monkeypatch):
    """Uses COPY on PostgreSQL, and restores into tables created by migrations."""
    busy_dump(stage, monkeypatch)
    before = len(stage.rows)
    manifest = create_backup(tmp_path / "backup")
    assert manifest.database["form"] == ("copy" if IS_POSTGRES else "sqlite")
    assert len(stage.rows) == before + 1
    with empty_database(tmp_path, migrated=True) as url:
        done = restore(url, tmp_path / "backup", tmp_path / "elsewhere")
        assert done.returncode == 0, done.stderr
        assert answer(url, ROWS) == before


@contextmanager
def old_month(at):
    """Create the partition of a past month, and drop it afterwards."""
    create_month_partition(get_month_start(at), timezone.now())
    yield build_month_partition(get_month_start(at)).name
    empty([LEDGER_TABLE])
    drop_empty_partitions()


@pytest.mark.hard
@pytest.mark.skipif(not IS_POSTGRES, reason="SQLite keeps its one table")
@pytest.mark.parametrize("form", ["pg_dump", "copy"])
def test_the_months_of_the_ledger_come_back_as_they_were(stage, tmp_path, settings, form):
    """Also into existing tables with other months; rows outside of them get their own partition."""
    if form == "copy":
        settings.DRAMATIS_POSTGRES_PROGRAMS = str(tmp_path)
    past, stray = timezone.now() - timedelta(days=400), timezone.now() + timedelta(days=4_000)
    with old_month(past) as month:
        insert_rows(stage, [past, stray])
        places = [build_month_partition(get_month_start(at)).name for at in (timezone.now(), stray)]
        assert create_backup(tmp_path / "backup").database["form"] == form
    with empty_database(tmp_path, migrated=True) as url:
        done = restore(url, tmp_path / "backup", tmp_path / "elsewhere")
        assert done.returncode == 0, done.stderr
        assert answer(url, PLACES) == " ".join([month, *places])
        assert f"{stage.workspace.slug} verified" in done.stdout
        assert answer(url, GUARDS) == answer(url, TABLES)


@pytest.mark.hard
@pytest.mark.planted
def test_a_backup_made_table_by_table_is_caught(stage, tmp_path, by_copy, monkeypatch):
    """Without a common snapshot, the dumped rows differ from the counted ones."""

    @contextmanager
    def no_snapshot():
        connection.ensure_connection()
        yield ""

    monkeypatch.setattr(backup_create, "open_snapshot", no_snapshot)
    busy_dump(stage, monkeypatch)
    create_backup(tmp_path / "backup")
    with empty_database(tmp_path, migrated=True) as url:
        done = restore(url, tmp_path / "backup", tmp_path / "elsewhere")
    assert done.returncode == 1
    assert "prompts_ledgerentry" in done.stderr
    assert "Do not use this database" in done.stderr


# --- atomic creation -----------------------------------------------------------------------------------


@pytest.mark.hard
@pytest.mark.planted
def test_a_flipped_byte_anywhere_is_refused(stage, tmp_path, by_copy):
    backup = tmp_path / "backup"
    create_backup(backup)
    files = [path for path in backup.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {MANIFEST_NAME, f"{stage.workspace.pk}.jsonl"}
    for path in files:
        content = path.read_bytes()
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(BackupError):
            read_manifest(backup)
        path.write_bytes(content)
    read_manifest(backup)


@pytest.mark.hard
def test_a_backup_that_fails_leaves_nothing_behind(stage, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(backup_create, "write_manifest", full)
    with pytest.raises(BackupError, match="No space left"):
        create_backup(tmp_path / "backups" / "one")
    assert list((tmp_path / "backups").iterdir()) == []


@pytest.mark.hard
@pytest.mark.skipif(not IS_POSTGRES, reason="SQLite needs no program")
def test_a_program_that_fails_says_why(stage, tmp_path, monkeypatch):
    monkeypatch.setattr(
        pg_dump, "CONNECTION_VARIABLES", {**pg_dump.CONNECTION_VARIABLES, "dbname": "PGNOTHING"}
    )
    monkeypatch.setenv("PGDATABASE", "nowhere")
    with pytest.raises(BackupError, match=r'pg_dump failed: .*"nowhere"'):
        create_backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


@pytest.mark.skipif(not IS_POSTGRES, reason="SQLite needs no program")
def test_a_program_older_than_the_server_is_not_used(settings):
    settings.DRAMATIS_POSTGRES_PROGRAMS = programs()
    assert pg_dump.find_program("pg_dump", pg_dump.get_server_major_version()) is not None
    assert pg_dump.find_program("pg_dump", 99) is None


def test_a_backup_says_what_is_in_it_and_is_refused_when_it_is_not(stage, tmp_path, capsys):
    backup = tmp_path / "backup"
    call_command("backup", str(backup), "--sample", "2")
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(backup))
    assert backup.stat().st_mode & 0o077 == 0
    manifest = json.loads((backup / MANIFEST_NAME).read_text())
    [chain] = manifest["chain"]
    assert chain["workspace"] == stage.workspace.pk
    assert chain["versions"]["count"] == stage.prompt.last_number
    assert chain["checkpoint"][0] == 1
    assert len(manifest["prompts"]) == 2
    call_command("restore", str(backup), "--only-check")
    assert "files match the backup" in capsys.readouterr().out
    check_rejections(stage, backup)


def check_rejections(stage, backup: Path) -> None:
    """Reject a database with rows, a missing file, and a missing manifest, as after a power failure."""
    before = len(stage.rows)
    with pytest.raises(CommandError, match="not empty"):
        call_command("restore", str(backup))
    assert len(stage.rows) == before
    (backup / "checkpoints" / f"{stage.workspace.pk}.jsonl").unlink()
    with pytest.raises(BackupError, match="is missing"):
        read_manifest(backup)
    (backup / MANIFEST_NAME).unlink()
    with pytest.raises(BackupError, match="No backup in"):
        restore_backup(backup, report=print)


# --- rejections ----------------------------------------------------------------------------------------


@pytest.mark.hard
def test_a_backup_of_a_newer_release_is_refused(stage, tmp_path, monkeypatch):
    real = list_applied_migrations
    monkeypatch.setattr(
        backup_create, "list_applied_migrations", lambda: [*real(), ["prompts", "0999_later"]]
    )
    create_backup(tmp_path / "backup")
    with pytest.raises(CommandError, match="newer release"):
        call_command("restore", str(tmp_path / "backup"))


def make_owner(stage):
    from personas.models import Membership

    return Membership.objects.in_workspace(stage.workspace).filter(role="owner").get().user
