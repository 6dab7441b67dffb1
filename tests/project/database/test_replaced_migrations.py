"""Replaced migrations: a database that has applied all of them counts as migrated."""

from collections import Counter
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from project.backup.errors import BackupError
from project.backup.manifest import Manifest
from project.backup.restore import check_compatibility, require_empty_database
from project.database.replaced_migrations import add_replacements, list_replacements
from project.doctor import datastores
from project.doctor.results import FindingState
from project.supervisor.prepare_database import DatabaseNotReady, prepare_database
from tests.project.backup.backup_stage import answer, empty_database, manage

pytestmark = pytest.mark.django_db
OURS = ("personas", "skills", "prompts")
REPLACEMENTS = list_replacements(MigrationLoader(None))
APPLIED = "SELECT count(*) FROM django_migrations"
TABLES = {
    "postgresql": "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
    "AND relnamespace = 'public'::regnamespace",
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'table'",
}


def list_applied() -> set[tuple[str, str]]:
    return {key for key in MigrationRecorder(connection).applied_migrations() if key[0] in OURS}


def forget(*keys: tuple[str, str]) -> None:
    for app, name in keys:
        MigrationRecorder(connection).record_unapplied(app, name)


@pytest.fixture
def old_names(db) -> set[tuple[str, str]]:
    """The names of the replaced migrations and of later ones, which are now the only ones recorded."""
    forget(*REPLACEMENTS)
    return list_applied()


def build_manifest(applied: set[tuple[str, str]]) -> Manifest:
    manifest = Manifest("2026-11-17T00:00:00+00:00", {"vendor": connection.vendor}, {}, [])
    manifest.migrations = [list(key) for key in sorted(applied)]
    return manifest


def test_each_replaced_migration_is_replaced_once():
    counts = Counter(name for names in REPLACEMENTS.values() for name in names)
    assert Counter(app for app, _ in counts) == {"personas": 31, "skills": 13, "prompts": 32}
    assert set(counts.values()) == {1}
    assert not set(REPLACEMENTS) & set(counts)


def test_a_database_with_all_replaced_migrations_is_migrated(old_names):
    assert len(old_names & {name for names in REPLACEMENTS.values() for name in names}) == 76
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    assert datastores.check_migrations().state == FindingState.OK
    call_command("migrate", check_unapplied=True, stdout=StringIO())
    output = StringIO()
    call_command("migrate", stdout=output)
    assert "No migrations to apply." in output.getvalue()
    assert list_applied() == old_names | set(REPLACEMENTS)


def test_a_database_with_some_replaced_migrations_is_refused_with_a_reason(old_names):
    forget(("prompts", "0030_comments"))
    with pytest.raises(CommandError, match="Only some of the migrations"):
        call_command("migrate", stdout=StringIO())
    with pytest.raises(DatabaseNotReady, match="Only some of the migrations"):
        prepare_database(empty=True)
    finding = datastores.check_migrations()
    assert (finding.state, "docs/upgrading.md" in finding.message) == (FindingState.FAIL, True)


# --- backups -------------------------------------------------------------------------------------------


def test_a_backup_with_all_replaced_migrations_is_accepted():
    """Also by an empty database that this release has migrated."""
    applied = set(MigrationRecorder(connection).applied_migrations()) - set(REPLACEMENTS)
    manifest = build_manifest(applied)
    check_compatibility(manifest)
    require_empty_database(manifest)
    assert add_replacements(applied) == applied | set(REPLACEMENTS)


def test_a_backup_with_some_replaced_migrations_is_refused(old_names):
    with pytest.raises(BackupError, match="Only some of the migrations"):
        check_compatibility(build_manifest(old_names - {("skills", "0013_plain_choices")}))


# --- forwards and backwards ----------------------------------------------------------------------------


@pytest.mark.hard
@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_all_migrations_can_be_reversed_and_applied_again(tmp_path, vendor):
    if connection.vendor == "sqlite" and vendor == "postgresql":
        pytest.skip("this run has no PostgreSQL")
    with empty_database(tmp_path, vendor) as url:
        states = []
        for _ in range(2):
            done = manage(url, "migrate", "-v0")
            assert done.returncode == 0, done.stderr
            states.append((answer(url, APPLIED), answer(url, TABLES[vendor])))
            for app in reversed(OURS):
                done = manage(url, "migrate", app, "zero", "-v0")
                assert done.returncode == 0, done.stderr
            plan = manage(url, "showmigrations", "--format", "json", *OURS)
            assert "[X]" not in plan.stdout, plan.stdout
        assert states[0] == states[1]
