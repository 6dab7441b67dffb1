"""Create a backup: write it to a temporary folder with a manifest, and rename the complete folder."""

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
from django.db import connection
from django.utils import timezone

from project.backup import checkpoint_backup, endings, pg_dump, postgres_copy, sqlite
from project.backup.checksums import checksum_tables, list_applied_migrations
from project.backup.errors import STORAGE_ERRORS, BackupError, require_unrestricted_role
from project.backup.manifest import Manifest, write_manifest
from project.backup.samples import list_chain_heads, sample_prompts
from project.backup.snapshot import open_snapshot
from project.distribution.catalog import get_distribution
from prompts.publishing.builds.compiler import get_compiler_digest

DEFAULT_SAMPLE_SIZE = 200


def create_backup(target: Path, *, sample: int = DEFAULT_SAMPLE_SIZE) -> Manifest:
    """Create a backup in the new folder `target`, with all rows from one database snapshot.

    `sample` is the number of prompts whose text digest is recorded. If the backup fails, raise BackupError
    with the reason and leave no folder behind.
    """
    if connection.in_atomic_block:
        raise BackupError("A backup cannot be created inside a transaction.")
    try:
        require_unrestricted_role()
        with create_folder_atomically(target) as draft:
            checkpoint_backup.copy_checkpoint_files(draft)
            # Before the snapshot is opened, so that the snapshot contains every ending in the copied journal.
            position = endings.copy_journal(draft)
            manifest = dump_database(draft, sample)
            manifest.journal = list(position)
            write_manifest(draft, manifest)
    except STORAGE_ERRORS as error:
        raise BackupError(f"The backup failed: {' '.join(str(error).split())}") from error
    return manifest


@contextmanager
def create_folder_atomically(target: Path) -> Iterator[Path]:
    """Yield a hidden temporary folder, and rename it to the target if the block succeeds."""
    if os.path.lexists(target):
        raise BackupError(f"{target} already exists. Choose a folder that does not exist.")
    draft = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft.mkdir(mode=0o700)
    try:
        yield draft
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def dump_database(folder: Path, sample: int) -> Manifest:
    with open_snapshot() as snapshot:
        if connection.vendor != "postgresql":
            sqlite.dump_sqlite(folder)
            return build_manifest(sqlite.DUMP_FORMAT, {}, sample)
        program = pg_dump.find_program("pg_dump", pg_dump.get_server_major_version())
        if program is None:
            return build_manifest(
                postgres_copy.DUMP_FORMAT, postgres_copy.dump_postgres_tables(folder), sample
            )
        return dump_with_program(program, snapshot, folder, sample)


def dump_with_program(program: Path, snapshot: str, folder: Path, sample: int) -> Manifest:
    """Run pg_dump and compute the manifest at the same time; both read the same snapshot."""
    process = pg_dump.start_pg_dump(program, snapshot, folder)
    try:
        manifest = build_manifest(pg_dump.DUMP_FORMAT, {}, sample)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    pg_dump.finish_pg_dump(process)
    return manifest


def build_manifest(dump_format: str, details: dict[str, Any], sample: int) -> Manifest:
    """Return the manifest of the open snapshot."""
    return Manifest(
        made_at=timezone.now().isoformat(),
        database={
            "vendor": connection.vendor,
            "version": get_server_version(),
            "form": dump_format,
            "distribution": get_distribution(),
        },
        versions={
            "django": django.__version__,
            "python": platform.python_version(),
            "compiler": get_compiler_digest(),
        },
        migrations=list_applied_migrations(),
        tables=checksum_tables(),
        chain=list_chain_heads(),
        prompts=sample_prompts(sample),
        details=details,
    )


def get_server_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SHOW server_version" if connection.vendor == "postgresql" else "SELECT sqlite_version()"
        )
        return str(cursor.fetchone()[0])
