"""Which endings a restore applies, and when the journal does not tell enough."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command

from project.backup.checkpoint_backup import CHECKPOINTS_FOLDER
from project.backup.endings import (
    MAX_JOURNAL_AGE,
    EndingsSinceBackup,
    RestoreOptions,
    copy_journal,
    describe_endings,
    find_endings,
    restore_journal,
)
from project.backup.errors import BackupError
from project.backup.manifest import read_manifest
from project.journal.files import HEAD_FILE, JOURNAL_FILE, read_journal
from tests.project.backup.small_backup import write_small_backup
from tests.project.journal.test_files import append

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
FILES = (HEAD_FILE, JOURNAL_FILE)


@pytest.fixture
def checkpoints(settings, tmp_path: Path) -> Path:
    """Return a journal with two endings, at 12:00."""
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    append(tmp_path / "checkpoints", 1, 2, now=NOW)
    return tmp_path / "checkpoints"


@pytest.fixture
def backup(checkpoints, tmp_path) -> Path:
    """Return a backup of 12:00:30; another ending follows at 12:01."""
    backup = write_small_backup(tmp_path / "backup", made_at=NOW + timedelta(seconds=30))
    append(checkpoints, 3, now=NOW + timedelta(minutes=1))
    return backup


def find(backup: Path, *, minutes: float = 2, **options: bool) -> EndingsSinceBackup:
    with time_machine.travel(NOW + timedelta(minutes=minutes)):
        return find_endings(read_manifest(backup), RestoreOptions(**options))


def list_ids(found: EndingsSinceBackup) -> list[int]:
    return [ending["id"] for ending in found.endings]


def test_only_endings_after_the_backup_are_applied(backup):
    found = find(backup)
    assert (list_ids(found), found.gap) == ([3], "")
    assert describe_endings(found, RestoreOptions()) == ["The journal lists 1 endings since the backup."]


def test_without_a_position_all_endings_are_applied(backup):
    """For example a backup of an installation without a signing key."""
    manifest = read_manifest(backup)
    manifest.journal = [0, ""]
    with time_machine.travel(NOW + timedelta(minutes=2)):
        assert list_ids(find_endings(manifest, RestoreOptions())) == [1, 2, 3]


def test_without_a_journal_it_is_not_known_what_ended(backup, checkpoints):
    shutil.rmtree(checkpoints)
    found = find(backup)
    assert "No journal of endings" in found.gap
    assert "all keys are revoked" in " ".join(describe_endings(found, RestoreOptions()))
    kept = " ".join(describe_endings(found, RestoreOptions(keep_keys=True)))
    assert "Keys and invitations are kept" in kept
    # The journal of the backup is continued.
    checkpoints.mkdir()
    restore_journal(backup, None, found)
    journal = read_journal(checkpoints)
    assert journal is not None
    assert journal.head.lines == 2


def test_a_journal_that_ends_before_the_backup_is_not_enough(backup, checkpoints, tmp_path):
    """For example an old copy of the folder. The longer journal of the backup is continued."""
    later = write_small_backup(tmp_path / "later", made_at=NOW + timedelta(minutes=2))
    for name in FILES:
        shutil.copyfile(backup / CHECKPOINTS_FOLDER / name, checkpoints / name)
    found = find(later)
    assert (list_ids(found), found.is_journal_kept) == ([], False)
    assert "ends at 2026-05-04 12:00:00 UTC, before the backup" in found.gap
    restore_journal(later, None, found)
    journal = read_journal(checkpoints)
    assert journal is not None
    assert journal.head.lines == 3
    assert sorted(path.name for path in checkpoints.glob("before-restore-*/*")) == sorted(FILES)


def test_a_journal_that_stopped_before_the_backup_is_continued(checkpoints, tmp_path):
    """It has all lines that the backup knows, but nobody wrote it when the backup was made."""
    backup = write_small_backup(tmp_path / "backup", made_at=NOW + timedelta(hours=5))
    found = find(backup, minutes=301)
    assert "before the backup" in found.gap
    assert found.is_journal_kept


def test_a_journal_that_ended_long_ago_may_lack_endings(backup):
    found = find(backup, minutes=2 + MAX_JOURNAL_AGE.total_seconds() / 60)
    assert list_ids(found) == [3]
    assert "16 minutes ago" in found.gap
    assert found.is_journal_kept


@pytest.mark.planted
def test_a_changed_journal_is_an_error_that_names_the_way_out(backup, checkpoints):
    content = (checkpoints / JOURNAL_FILE).read_bytes()
    (checkpoints / JOURNAL_FILE).write_bytes(content.replace(b'"id":3', b'"id":4'))
    with pytest.raises(CommandError, match=r"is damaged: .*--without-journal"):
        call_command("restore", str(backup), "--only-check")
    found = find(backup, without_journal=True)
    assert (found.endings, found.gap) == ([], "The journal of endings is ignored.")
    restore_journal(backup, None, found)
    journal = read_journal(checkpoints)
    assert journal is not None
    assert journal.head.lines == 2


@pytest.mark.planted
def test_the_journal_of_another_installation_is_an_error(backup, checkpoints):
    """It is valid and long enough, and has other lines where the backup was made."""
    for name in FILES:
        (checkpoints / name).unlink()
    append(checkpoints, 7, 8, 9, now=NOW + timedelta(minutes=1))
    with pytest.raises(BackupError, match="does not belong to this backup"):
        find(backup)


def test_a_damaged_journal_does_not_prevent_a_backup(checkpoints, tmp_path):
    (checkpoints / HEAD_FILE).write_text("{}")
    (tmp_path / CHECKPOINTS_FOLDER).mkdir(exist_ok=True)
    assert copy_journal(tmp_path) == (0, "")


def test_only_check_says_what_a_restore_would_do(backup, capsys):
    with time_machine.travel(NOW + timedelta(hours=3)):
        call_command("restore", str(backup), "--only-check")
    output = capsys.readouterr().out
    assert "The manifest is signed" in output
    assert "The journal lists 1 endings since the backup." in output
    assert "179 minutes ago" in output
    assert "unless you pass --keep-keys" in output
