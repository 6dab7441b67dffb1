"""What must be true before `distribute` changes the database."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from project.backup.errors import BackupError
from project.backup.manifest import read_manifest
from project.database.roles import UnsuitableRole, require_table_owner
from project.distribution.catalog import Catalog, query_rows

MIN_POSTGRES_VERSION = 150_000
MIN_CITUS_VERSION = (12, 1)
MAX_BACKUP_AGE = timedelta(hours=1)
# Connections of other programs, without those that Citus opens between nodes. This command's own connections,
# of which its pool may have several, are recognized by their application name.
OTHER_CONNECTIONS_SQL = """
SELECT usename, count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
AND application_name NOT ILIKE 'citus%' AND application_name <> current_setting('application_name')
GROUP BY usename ORDER BY usename
"""
NODES_SQL = """
SELECT nodename || ':' || nodeport FROM pg_dist_node
WHERE isactive AND shouldhaveshards AND noderole = 'primary' ORDER BY 1
"""
# Checking one table is enough, because one role owns all tables.
OWNER_SQL = """
SELECT r.rolsuper OR pg_has_role(r.oid, t.relowner, 'USAGE')
FROM pg_roles r, pg_class t WHERE r.rolname = current_user AND t.oid = to_regclass('personas_workspace')
"""


def list_obstacles(catalog: Catalog, *, backup: Path | None, without_backup: bool) -> list[str]:
    """Return a sentence for each precondition that is not met."""
    return [
        *check_versions(catalog),
        *check_role(),
        *check_migrations(),
        *check_connections(),
        *(() if without_backup else check_backup(backup)),
    ]


def check_versions(catalog: Catalog) -> Iterator[str]:
    version = int(query_rows("SHOW server_version_num")[0][0])
    if version < MIN_POSTGRES_VERSION:
        yield f"PostgreSQL 15 or newer is needed; this is {version // 10_000}."
    if catalog.has_citus:
        numbers = tuple(int(part) for part in catalog.citus_version.split("-")[0].split("."))
        if numbers < MIN_CITUS_VERSION:
            yield f"Citus 12.1 or newer is required. This is {catalog.citus_version}."
        if not query_rows(NODES_SQL):
            yield "Citus has no worker nodes. Add them with citus_add_node() first."


def check_role() -> Iterator[str]:
    try:
        require_table_owner()
    except UnsuitableRole as error:
        yield str(error)
        return
    if rows := query_rows(OWNER_SQL):
        if not rows[0][0]:
            yield "This role does not own the tables. Set DATABASE_URL to the owner."
    else:
        yield "There are no tables yet. Run manage.py migrate first."


def check_migrations() -> Iterator[str]:
    executor = MigrationExecutor(connection)
    if waiting := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        migration, _ = waiting[0]
        yield (
            f"{len(waiting)} migrations are not applied, starting with {migration}. Run manage.py migrate."
        )


def check_connections() -> Iterator[str]:
    if others := query_rows(OTHER_CONNECTIONS_SQL):
        names = ", ".join(f"{count} of {name}" for name, count in others)
        yield f"Other connections are open ({names}). Stop web, worker and beat first."


def check_backup(folder: Path | None) -> Iterator[str]:
    if folder is None:
        yield "Pass a backup of the last hour with --backup, or pass --without-backup."
        return
    try:
        manifest = read_manifest(folder)
    except BackupError as error:
        yield str(error)
        return
    if timezone.now() - datetime.fromisoformat(manifest.made_at) > MAX_BACKUP_AGE:
        yield (
            f"The backup is older than an hour ({manifest.made_at}). Create a new one with manage.py backup."
        )
    if manifest.database["vendor"] != connection.vendor:
        yield f"The backup is of {manifest.database['vendor']}."
