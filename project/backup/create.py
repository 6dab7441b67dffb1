"""Makes a backup: written aside, checked into a manifest, and given its name when it is whole."""

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

from project.backup import checkpoint_files, pg_dump, postgres_copy, sqlite
from project.backup.checksums import applied_migrations, digests
from project.backup.errors import TROUBLES, BackupError, refuse_held_role
from project.backup.manifest import Manifest, write_manifest
from project.backup.samples import chain_heads, sampled_prompts
from project.backup.snapshot import held_moment
from prompts.builds.compiler import compiler

SAMPLE = 200


def make_backup(target: Path, *, sample: int = SAMPLE) -> Manifest:
    """One moment of everything, in a new folder; BackupError with the reason, and then there is no folder."""
    if connection.in_atomic_block:
        raise BackupError("A backup cannot be made inside of a transaction.")
    try:
        refuse_held_role()
        with written_aside(target) as draft:
            checkpoint_files.take_along(draft)
            manifest = dumped(draft, sample)
            write_manifest(draft, manifest)
    except TROUBLES as error:
        raise BackupError(f"No backup was made: {' '.join(str(error).split())}") from error
    return manifest


@contextmanager
def written_aside(target: Path) -> Iterator[Path]:
    """A folder that nobody takes for a backup, until the renaming that makes it one."""
    if os.path.lexists(target):
        raise BackupError(f"{target} is there already. Name a folder that is not.")
    draft = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft.mkdir(mode=0o700)
    try:
        yield draft
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def dumped(folder: Path, sample: int) -> Manifest:
    with held_moment() as moment:
        if connection.vendor != "postgresql":
            sqlite.dump(folder)
            return described(sqlite.FORM, {}, sample)
        program = pg_dump.usable_program("pg_dump", pg_dump.server_major())
        if program is None:
            return described(postgres_copy.FORM, postgres_copy.dump(folder), sample)
        return beside_program(program, moment, folder, sample)


def beside_program(program: Path, moment: str, folder: Path, sample: int) -> Manifest:
    """The program writes while we count: both see the same moment."""
    process = pg_dump.begin_dump(program, moment, folder)
    try:
        manifest = described(pg_dump.FORM, {}, sample)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    pg_dump.end_dump(process)
    return manifest


def described(form: str, details: dict[str, Any], sample: int) -> Manifest:
    """What is true in this moment; called while it is held."""
    return Manifest(
        made_at=timezone.now().isoformat(),
        database={"vendor": connection.vendor, "version": server_version(), "form": form},
        versions={"django": django.__version__, "python": platform.python_version(), "compiler": compiler()},
        migrations=applied_migrations(),
        tables=digests(),
        chain=chain_heads(),
        prompts=sampled_prompts(sample),
        details=details,
    )


def server_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SHOW server_version" if connection.vendor == "postgresql" else "SELECT sqlite_version()"
        )
        return str(cursor.fetchone()[0])
