"""A restored database: what ended after the backup has ended, or what is not known to be valid."""

import json
import shutil
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection

from personas.api_keys.services import revoke_key
from personas.members.services import remove_member
from personas.models import ErasureCounter, Membership
from project.backup.create import create_backup
from project.backup.manifest import MANIFEST_NAME
from project.journal.files import JOURNAL_FILE
from project.journal.services import STATUS_KEY, record_endings
from prompts.evidence.erasure.services import erase_record
from tests.factories import BY, make_memory
from tests.project.backup.backup_stage import answer, empty_database, manage, programs, restore
from tests.prompts.serving.serving_stage import make_stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SECRET = "Mrs Penhaligon keeps her spare key under the third flowerpot."
REVOKED = "SELECT count(*) FROM personas_apikey WHERE revoked_at IS NOT NULL"
MEMBERS = "SELECT count(*) FROM personas_membership"
ERASED = "SELECT count(*) FROM personas_erasure WHERE reason = 'She asked for it.'"
MEMORY_TEXTS = "SELECT max(text) FROM personas_memory"


@pytest.fixture
def checkpoints(settings, tmp_path: Path) -> Path:
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    settings.DRAMATIS_POSTGRES_PROGRAMS = programs()
    return tmp_path / "checkpoints"


@pytest.fixture
def stage(workspace, checkpoints):
    yield make_stage(workspace)
    cache.delete(STATUS_KEY)


@pytest.fixture
def backup(stage, tmp_path: Path) -> Path:
    """Return a backup with a memory, a member and a key that have ended since, and a journal of that."""
    memory = make_memory(stage.workspace, SECRET)
    stage.edit("Be calm.")
    record_endings()
    assert create_backup(tmp_path / "backup").journal == [0, ""]
    revoke_key(stage.key, by=BY)
    remove_member(Membership.objects.in_workspace(stage.workspace).get(role="editor"), by=BY)
    erase_record(memory, reason="She asked for it.", by=BY)
    record_endings()
    return tmp_path / "backup"


def test_what_ended_after_the_backup_ends_again(stage, backup, tmp_path):
    assert Membership.objects.in_workspace(stage.workspace).count() == 1
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "checkpoints", elsewhere)
    with empty_database(tmp_path) as url:
        done = restore(url, backup, elsewhere)
        assert done.returncode == 0, done.stderr
        for sentence in (
            "The journal lists 3 endings since the backup.",
            "All sessions were ended",
            "keys revoked after the backup: 1.",
            "members removed: 1.",
            "erasures repeated: 1.",
            "The journal of endings is complete.",
            "which is a trusted key",
        ):
            assert sentence in done.stdout
        assert answer(url, REVOKED) == 1
        assert answer(url, MEMBERS) == 1
        assert answer(url, ERASED) == 1
        assert answer(url, MEMORY_TEXTS) == "[erased]"
    # The worker continues this journal.
    assert (elsewhere / JOURNAL_FILE).read_bytes() == (tmp_path / "checkpoints" / JOURNAL_FILE).read_bytes()


def test_without_a_journal_all_keys_are_revoked(stage, backup, tmp_path):
    manifest = json.loads((backup / MANIFEST_NAME).read_text())
    assert manifest["journal"][0] == 0
    del manifest["signature"]
    (backup / MANIFEST_NAME).write_text(json.dumps(manifest))
    with empty_database(tmp_path) as url:
        refused = restore(url, backup, tmp_path / "elsewhere")
        assert refused.returncode == 1
        assert "--allow-unsigned" in refused.stderr
        done = manage(
            url, "restore", backup, "--allow-unsigned", DRAMATIS_CHECKPOINT_DIR=str(tmp_path / "elsewhere")
        )
        assert done.returncode == 0, done.stderr
        assert "The manifest is not signed" in done.stdout
        assert "No journal of endings" in done.stdout
        assert "1 keys were revoked and 0 invitations withdrawn" in done.stdout
        assert "members, roles, passwords and second factors" in done.stdout
        assert answer(url, REVOKED) == 1
        assert answer(url, MEMBERS) == 2


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite copies the complete file")
def test_a_database_with_erasures_is_restored_without_pg_restore(stage, tmp_path, settings):
    """Triggers count erasures while the rows are loaded."""
    settings.DRAMATIS_POSTGRES_PROGRAMS = str(tmp_path)
    erase_record(make_memory(stage.workspace, SECRET), reason="She asked for it.", by=BY)
    number = ErasureCounter.objects.in_workspace(stage.workspace).get().number
    assert create_backup(tmp_path / "backup").database["form"] == "copy"
    with empty_database(tmp_path, migrated=True) as url:
        done = restore(url, tmp_path / "backup", tmp_path / "elsewhere")
        assert done.returncode == 0, done.stderr
        assert answer(url, "SELECT number FROM personas_erasurecounter") == number


@pytest.mark.hard
def test_keys_are_kept_on_request(stage, tmp_path):
    create_backup(tmp_path / "backup")
    with empty_database(tmp_path) as url:
        done = manage(
            url,
            "restore",
            tmp_path / "backup",
            "--keep-keys",
            DRAMATIS_CHECKPOINT_DIR=str(tmp_path / "elsewhere"),
        )
        assert done.returncode == 0, done.stderr
        assert "Keys and invitations are kept" in done.stdout
        assert answer(url, REVOKED) == 0
