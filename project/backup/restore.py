"""Puts a backup back into an empty database, and proves that it is what was taken."""

from collections.abc import Callable, Iterable
from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from personas.models import Workspace
from project.backup import checkpoint_files, pg_dump, postgres_copy, sqlite
from project.backup.checksums import applied_migrations, digests, filled_table
from project.backup.errors import TROUBLES, BackupError, refuse_held_role
from project.backup.manifest import Manifest, read_manifest
from project.backup.samples import chain_heads, changed_prompts
from project.backup.snapshot import held_moment
from project.supervisor.prepare_database import lift_limits
from prompts.integrity.checkpoints import write_copies
from prompts.integrity.verify import verify_workspace
from prompts.ledger.partitions import make_months

Say = Callable[[str], None]
NOT_THE_SAME = "Do not serve from this database: empty it and restore another backup."


def restore_backup(source: Path, *, sample: int | None = None, say: Say) -> Manifest:
    """Load and prove; BackupError with the reason where it cannot be, or is not the same."""
    manifest = read_manifest(source)
    say(f"{len(manifest.files)} files are what was written ({manifest.size:,} bytes).")
    try:
        refuse_held_role()
        refuse_other_house(manifest)
        refuse_filled(manifest)
        load(manifest, source)
        say(f"{manifest.rows:,} rows in {len(manifest.tables)} tables were loaded.")
        prove(manifest, source, sample, say)
    except TROUBLES as error:
        raise BackupError(f"It was not restored: {' '.join(str(error).split())}") from error
    return manifest


def refuse_other_house(manifest: Manifest) -> None:
    vendor = manifest.database["vendor"]
    if vendor != connection.vendor:
        raise BackupError(f"This is a backup of {vendor}, and the database is {connection.vendor}.")
    known = set(MigrationExecutor(connection).loader.graph.nodes)
    unknown = [f"{app}.{name}" for app, name in manifest.migrations if (app, name) not in known]
    # Migrations of an app that was squashed or removed long ago stay in the table of those applied.
    ours = [name for name in unknown if name.startswith(("personas.", "skills.", "prompts."))]
    if ours:
        raise BackupError(
            f"This backup is of a newer release (it has {ours[-1]}). Restore it with that release."
        )


def refuse_filled(manifest: Manifest) -> None:
    if table := filled_table():
        raise BackupError(f"The database is not empty: {table} has rows. Restore into an empty one.")
    # A release may have made its tables already, but not those of a later one: they would be left over.
    if any(step not in manifest.migrations for step in applied_migrations()):
        raise BackupError(
            "This database was migrated further than the backup. Restore into one without tables."
        )


def load(manifest: Manifest, source: Path) -> None:
    form = manifest.database["form"]
    if form == sqlite.FORM:
        sqlite.load(source)
    elif form == postgres_copy.FORM:
        postgres_copy.load(source, manifest.details, manifest.migrations)
    else:
        program = pg_dump.usable_program("pg_restore", int(manifest.database["version"].split(".")[0]))
        if program is None:
            raise BackupError(
                "pg_restore as new as the backup's PostgreSQL is needed: set DRAMATIS_POSTGRES_PROGRAMS."
            )
        pg_dump.load(program, source)


# --- proving -------------------------------------------------------------------------------------------


def prove(manifest: Manifest, source: Path, sample: int | None, say: Say) -> None:
    with held_moment():
        refuse_differences(changed_tables(manifest))
    say("Every table has the rows it had.")
    bring_up_to_date()
    if chain_heads() != manifest.chain:
        raise BackupError(f"The chains do not end where they ended. {NOT_THE_SAME}")
    prompts = dict(list(manifest.prompts.items())[:sample])
    if changed := changed_prompts(prompts):
        raise BackupError(f"{len(changed)} of {len(prompts)} prompts say something else. {NOT_THE_SAME}")
    say(f"{len(prompts)} sampled prompts are the same to the byte.")
    if aside := checkpoint_files.put_back(source):
        say(f"Checkpoint files that were there already lie in {aside} now.")
    verify_all(say)


def changed_tables(manifest: Manifest) -> list[str]:
    there = digests()
    return [
        name for name in sorted({*there, *manifest.tables}) if there.get(name) != manifest.tables.get(name)
    ]


def refuse_differences(tables: Iterable[str]) -> None:
    if names := ", ".join(tables):
        raise BackupError(f"These tables are not what was taken: {names}. {NOT_THE_SAME}")


def bring_up_to_date() -> None:
    """A newer release takes over an older one's backup."""
    lift_limits()
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    call_command("createcachetable", verbosity=0)
    make_months()


def verify_all(say: Say) -> None:
    """Recompute the whole record; the files on disk are first brought up to the database."""
    for workspace in Workspace.objects.order_by("pk"):
        write_copies(workspace.pk)
        found = verify_workspace(workspace)
        if found.first:
            raise BackupError(f"The record of {workspace.slug} is broken: {found.first}. {NOT_THE_SAME}")
        say(f"The record of {workspace.slug} holds: {found.checked:,} rows recomputed.")
