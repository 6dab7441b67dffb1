"""Migrations that were replaced by others before the first release, and what a database has applied of them.

A migration lists what it replaces in `replaces`, so that a database with all of these counts as migrated. The
files of the replaced migrations do not exist any more, so a database with only some of them cannot be
migrated. Django does not notice that.
"""

from collections.abc import Collection

from django.db.migrations.loader import MigrationLoader

MigrationName = tuple[str, str]

INCOMPLETE_MESSAGE = (
    "Only some of the migrations from before the first release are applied. See docs/upgrading.md, "
    '"Databases from before the first release".'
)


class IncompleteMigrations(Exception):
    """Some, but not all, of the migrations that one migration replaces are applied."""


def list_replacements(loader: MigrationLoader) -> dict[MigrationName, list[MigrationName]]:
    """Return by migration what it replaces, if these migrations do not exist any more."""
    return {
        key: list(migration.replaces)
        for key, migration in loader.disk_migrations.items()
        if migration.replaces and not loader.disk_migrations.keys() & set(migration.replaces)
    }


def require_complete_migrations(loader: MigrationLoader, applied: Collection[MigrationName]) -> None:
    for names in list_replacements(loader).values():
        if 0 < len(set(names) & set(applied)) < len(names):
            raise IncompleteMigrations(INCOMPLETE_MESSAGE)


# --- backups, which list the applied migrations --------------------------------------------------------


def list_known_migrations(loader: MigrationLoader) -> set[MigrationName]:
    return set(loader.disk_migrations).union(*list_replacements(loader).values())


def add_replacements(applied: set[MigrationName]) -> set[MigrationName]:
    """Add the migrations that count as applied because everything they replace is."""
    replacements = list_replacements(MigrationLoader(None))
    return applied | {key for key, names in replacements.items() if applied.issuperset(names)}
