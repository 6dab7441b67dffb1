"""The database role of the web, worker and beat processes: it can read and write rows, but not change tables.

Row-level security restricts it to the rows of one workspace at a time.
"""

from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, ProgrammingError, connection, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from project.database.config import build_limits
from project.database.postgresql.rls_cursor import is_connection_restricted

ROLE_ATTRIBUTES = "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION NOINHERIT"
GRANT_CONNECT_SQL = "GRANT CONNECT ON DATABASE {database} TO {role}"
GRANT_STATEMENTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    # The same privileges for tables that later migrations create.
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE ON SEQUENCES TO {role}",
    # Only the owner of the tables applies migrations.
    "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}",
)
# Only for this database, because other databases of the server may use the same role.
SET_LIMIT_SQL = "ALTER ROLE {role} IN DATABASE {database} SET {setting} = {value}"
ROLE_SETTINGS_SQL = """
SELECT unnest(s.setconfig) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
JOIN pg_database d ON d.oid = s.setdatabase WHERE r.rolname = %s AND d.datname = current_database()
"""
ROLE_FLAGS_SQL = """
SELECT r.rolsuper, r.rolbypassrls, r.rolcreatedb, r.rolcreaterole, r.rolreplication, EXISTS (
SELECT 1 FROM pg_class t WHERE t.relkind IN ('r', 'p') AND t.relnamespace = current_schema()::regnamespace
AND pg_has_role(r.oid, t.relowner, 'MEMBER'))
FROM pg_roles r WHERE r.rolname = %s
"""


class UnsuitableRole(Exception):
    """The role cannot be used; the message is shown to the operator."""


@dataclass(frozen=True)
class RoleFlags:
    """Privileges of a role that the product's role must not have."""

    is_superuser: bool
    passes_row_security: bool
    makes_databases: bool
    makes_roles: bool
    replicates: bool
    owns_tables: bool

    @property
    def excess(self) -> list[str]:
        descriptions = {
            "is a superuser": self.is_superuser,
            "bypasses row-level security": self.passes_row_security,
            "can create databases": self.makes_databases,
            "can create roles": self.makes_roles,
            "can replicate": self.replicates,
            "owns tables, or is a member of a role that does": self.owns_tables,
        }
        return [description for description, is_set in descriptions.items() if is_set]


def is_role_restricted() -> bool:
    """Return whether row-level security restricts the role of this connection."""
    if connection.vendor != "postgresql":
        return False
    connection.ensure_connection()
    return is_connection_restricted(connection.connection)


def get_role_flags(name: str) -> RoleFlags | None:
    with connection.cursor() as cursor:
        cursor.execute(ROLE_FLAGS_SQL, [name])
        row = cursor.fetchone()
    return RoleFlags(*row) if row else None


@transaction.atomic
def prepare_role(name: str, password: str = "") -> bool:
    """Create the role if it does not exist and grant its privileges. Return whether it was created."""
    require_table_owner()
    is_new = get_role_flags(name) is None and create_role(name)
    if excess := (get_role_flags(name) or RoleFlags(*[False] * 6)).excess:
        raise UnsuitableRole(f"{name} {', '.join(excess)}. Revoke that, or choose another name.")
    if password:
        execute_role_statement(
            "ALTER ROLE {role} PASSWORD {password}",
            name,
            password=sql.Literal(encrypt_password(name, password)),
        )
    # CONNECT is usually granted to PUBLIC. Then this GRANT is skipped, because it locks the database's row in
    # pg_database.
    for grant in (*(() if can_connect(name) else (GRANT_CONNECT_SQL,)), *GRANT_STATEMENTS):
        execute_role_statement(grant, name)
    return is_new


def create_role(name: str) -> bool:
    """Create the role. Return False if another process has created it at the same time."""
    try:
        with transaction.atomic():
            execute_role_statement(f"CREATE ROLE {{role}} {ROLE_ATTRIBUTES}", name)
    except DatabaseError:
        if get_role_flags(name) is None:
            raise
        return False
    return True


def set_role_limits(name: str, statement_ms: int) -> bool:
    """Set the time limits of the role in this database. Return False if this role may not alter it.

    Direct connections send the limits as startup options, which take precedence. A pooler does not pass
    startup options on, so there the limits of the role apply.
    """
    limits = {setting: str(value) for setting, value in build_limits(statement_ms).items()}
    if limits.items() <= get_role_settings(name).items():
        return True
    try:
        with transaction.atomic():
            for setting, value in limits.items():
                names = {"setting": sql.Identifier(setting), "value": sql.Literal(value)}
                execute_role_statement(SET_LIMIT_SQL, name, **names)
    except ProgrammingError as error:
        if not isinstance(error.__cause__, InsufficientPrivilege):
            raise
        return False
    return True


def get_role_settings(name: str) -> dict[str, str]:
    """Return the settings of the role in this database, by `ALTER ROLE … IN DATABASE … SET`."""
    with connection.cursor() as cursor:
        cursor.execute(ROLE_SETTINGS_SQL, [name])
        return dict(setting.split("=", 1) for (setting,) in cursor.fetchall())


def can_connect(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_database_privilege(%s, current_database(), 'CONNECT')", [name])
        return bool(cursor.fetchone()[0])


def require_table_owner() -> None:
    if connection.vendor != "postgresql":
        raise UnsuitableRole("SQLite has no roles, so nothing was created.")
    if is_role_restricted():
        raise UnsuitableRole("This role does not own the tables. Set DATABASE_URL to the owner.")


def encrypt_password(name: str, password: str) -> str:
    """Hash the password as the server stores it, so that the server's log never contains the password."""
    raw: Any = connection.connection
    return str(raw.pgconn.encrypt_password(password.encode(), name.encode()).decode())


def execute_role_statement(statement: str, name: str, **more: sql.Composable) -> None:
    placeholders = {"role": sql.Identifier(name), **get_database_identifiers(), **more}
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(**placeholders).as_string(connection.connection))


def get_database_identifiers() -> dict[str, sql.Composable]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_schema()")
        database, schema = cursor.fetchone()
    return {"database": sql.Identifier(database), "schema": sql.Identifier(schema)}
