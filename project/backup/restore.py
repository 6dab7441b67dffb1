"""Restore a backup into an empty database, and verify it against the manifest."""

from collections.abc import Callable, Iterable
from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from personas.models import Workspace
from project.backup import checkpoint_backup, pg_dump, postgres_copy, sqlite
from project.backup.checksums import checksum_tables, find_filled_table, list_applied_migrations
from project.backup.endings import (
    EndingsSinceBackup,
    RestoreOptions,
    describe_endings,
    end_again,
    find_endings,
    restore_journal,
)
from project.backup.errors import STORAGE_ERRORS, BackupError, require_unrestricted_role
from project.backup.manifest import Manifest, read_manifest, require_signature
from project.backup.samples import find_changed_prompts, list_chain_heads
from project.backup.snapshot import open_snapshot
from project.supervisor.prepare_database import disable_statement_timeout
from prompts.evidence.integrity.checkpoint_signer import write_checkpoint_copies
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger.partitions import create_partitions

ProgressReporter = Callable[[str], None]
MISMATCH_ADVICE = "Do not use this database. Empty it and restore another backup."


def restore_backup(
    source: Path,
    *,
    sample: int | None = None,
    options: RestoreOptions | None = None,
    report: ProgressReporter,
) -> Manifest:
    """Load a backup, verify it, and end what ended after it. Raise BackupError with the reason on failure.

    `sample` limits how many prompts are compared; None compares all prompts in the manifest.
    """
    options = options or RestoreOptions()
    try:
        # Check before anything is loaded, because the operator may have to add an option.
        manifest, endings = check_backup(source, options, report)
        require_unrestricted_role()
        check_compatibility(manifest)
        require_empty_database(manifest)
        load_backup(manifest, source)
        report(f"{manifest.rows:,} rows in {len(manifest.tables)} tables were loaded.")
        moved_to = verify_restore(manifest, source, sample, report)
        restore_journal(source, moved_to, endings)
        end_again(endings, options, report)
        # Verify at the end, because repeated erasures add versions.
        verify_all_workspaces(report)
    except STORAGE_ERRORS as error:
        raise BackupError(f"The restore failed: {' '.join(str(error).split())}") from error
    return manifest


def check_backup(
    source: Path, options: RestoreOptions, report: ProgressReporter
) -> tuple[Manifest, EndingsSinceBackup]:
    """Check files, signature and journal, and load nothing. Return the manifest and the endings to apply."""
    manifest = read_manifest(source)
    report(f"{len(manifest.files)} files match the backup of {manifest.made_at} ({manifest.size:,} bytes).")
    report(require_signature(manifest, allow_unsigned=options.allow_unsigned))
    endings = find_endings(manifest, options)
    for sentence in describe_endings(endings, options):
        report(sentence)
    return manifest, endings


def check_compatibility(manifest: Manifest) -> None:
    vendor = manifest.database["vendor"]
    if vendor != connection.vendor:
        raise BackupError(f"This is a backup of {vendor}, but the database is {connection.vendor}.")
    known = MigrationLoader(None).disk_migrations
    unknown = [f"{app}.{name}" for app, name in manifest.migrations if (app, name) not in known]
    # Check our own apps only. An unknown migration of another app is no problem: the app may have been
    # removed, or its migrations squashed.
    ours = [name for name in unknown if name.startswith(("personas.", "skills.", "prompts."))]
    if ours:
        raise BackupError(
            f"This backup was created by a newer release (it has {ours[-1]}). Restore it with that release."
        )


def require_empty_database(manifest: Manifest) -> None:
    if table := find_filled_table():
        raise BackupError(f"The database is not empty: {table} has rows. Restore into an empty database.")
    # Tables of the backup's release are allowed. Tables of a later release are not, because the restore would
    # not remove them.
    if any(migration not in manifest.migrations for migration in list_applied_migrations()):
        raise BackupError(
            "This database has newer migrations than the backup. Restore into a database without tables."
        )


def load_backup(manifest: Manifest, source: Path) -> None:
    dump_format = manifest.database["form"]
    if dump_format == sqlite.DUMP_FORMAT:
        sqlite.load_sqlite(source)
    elif dump_format == postgres_copy.DUMP_FORMAT:
        postgres_copy.load_postgres_tables(source, manifest.details, manifest.migrations)
    else:
        program = pg_dump.find_program("pg_restore", int(manifest.database["version"].split(".")[0]))
        if program is None:
            raise BackupError(
                "The version of pg_restore is older than the PostgreSQL of the backup. Install a "
                "newer one and set DRAMATIS_POSTGRES_PROGRAMS."
            )
        pg_dump.run_pg_restore(program, source)


# --- verification --------------------------------------------------------------------------------------


def verify_restore(
    manifest: Manifest, source: Path, sample: int | None, report: ProgressReporter
) -> Path | None:
    """Compare the database with the manifest, and restore the checkpoint files.

    Return the folder to which existing checkpoint files were moved.
    """
    with open_snapshot():
        check_table_differences(find_changed_tables(manifest))
    report("All tables match the backup.")
    upgrade_database()
    if list_chain_heads() != manifest.chain:
        raise BackupError(f"The heads of the hash chains do not match the backup. {MISMATCH_ADVICE}")
    prompts = dict(list(manifest.prompts.items())[:sample])
    if changed := find_changed_prompts(prompts):
        raise BackupError(f"{len(changed)} of {len(prompts)} sampled prompts differ. {MISMATCH_ADVICE}")
    report(f"{len(prompts)} sampled prompts are byte-for-byte identical.")
    folder = checkpoint_backup.restore_checkpoint_files(source)
    if folder:
        report(f"Existing checkpoint files were moved to {folder}.")
    return folder


def find_changed_tables(manifest: Manifest) -> list[str]:
    tables = checksum_tables()
    return [
        name for name in sorted({*tables, *manifest.tables}) if tables.get(name) != manifest.tables.get(name)
    ]


def check_table_differences(tables: Iterable[str]) -> None:
    if names := ", ".join(tables):
        raise BackupError(f"These tables do not match the backup: {names}. {MISMATCH_ADVICE}")


def upgrade_database() -> None:
    """Apply the migrations of this release, which may be newer than the backup."""
    disable_statement_timeout()
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    call_command("createcachetable", verbosity=0)
    create_partitions()


def verify_all_workspaces(report: ProgressReporter) -> None:
    """Verify all hash chains of every workspace.

    Checkpoints that are missing from the checkpoint files are appended first.
    """
    for workspace in Workspace.objects.filter(removed_at=None).order_by("pk"):
        write_checkpoint_copies(workspace.pk)
        result = verify_workspace(workspace)
        if result.first:
            raise BackupError(
                f"The verification of {workspace.slug} failed: {result.first}. {MISMATCH_ADVICE}"
            )
        report(f"{workspace.slug} verified: {result.checked:,} rows recomputed.")
