"""The database role that the product works with: it may read and write rows, and is held by row security."""

from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection, transaction
from psycopg import sql

from project.database.postgresql.rls_cursor import is_connection_restricted

ROLE_ATTRIBUTES = "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION NOINHERIT"
GRANT_CONNECT_SQL = "GRANT CONNECT ON DATABASE {database} TO {role}"
GRANT_STATEMENTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    # For what later migrations make.
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE ON SEQUENCES TO {role}",
    # Which migrations were applied is for the owner to say.
    "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}",
)
ROLE_FLAGS_SQL = """
SELECT r.rolsuper, r.rolbypassrls, r.rolcreatedb, r.rolcreaterole, r.rolreplication, EXISTS (
SELECT 1 FROM pg_class t WHERE t.relkind IN ('r', 'p') AND t.relnamespace = current_schema()::regnamespace
AND pg_has_role(r.oid, t.relowner, 'MEMBER'))
FROM pg_roles r WHERE r.rolname = %s
"""


class UnsuitableRole(Exception):
    """The role cannot be used; the message is for people."""


@dataclass(frozen=True)
class RoleFlags:
    """What a role may that ours must not."""

    is_superuser: bool
    passes_row_security: bool
    makes_databases: bool
    makes_roles: bool
    replicates: bool
    owns_tables: bool

    @property
    def excess(self) -> list[str]:
        words = {
            "is a superuser": self.is_superuser,
            "passes by row security": self.passes_row_security,
            "may make databases": self.makes_databases,
            "may make roles": self.makes_roles,
            "may replicate": self.replicates,
            "owns tables, or may act for who does": self.owns_tables,
        }
        return [said for said, is_so in words.items() if is_so]


def is_role_restricted() -> bool:
    """Whether the role of this connection sees only what it was told."""
    if connection.vendor != "postgresql":
        return False
    connection.ensure_connection()
    return is_connection_restricted(connection.connection)


def get_role_flags(name: str) -> RoleFlags | None:
    with connection.cursor() as cursor:
        cursor.execute(ROLE_FLAGS_SQL, [name])
        found = cursor.fetchone()
    return RoleFlags(*found) if found else None


@transaction.atomic
def prepare_role(name: str, password: str = "") -> bool:
    """Make the role if there is none, give it what it needs, and say whether it is new."""
    require_table_owner()
    is_new = get_role_flags(name) is None and create_role(name)
    if excess := (get_role_flags(name) or RoleFlags(*[False] * 6)).excess:
        raise UnsuitableRole(f"{name} {', '.join(excess)}. Take that away, or choose another name.")
    if password:
        execute_role_statement(
            "ALTER ROLE {role} PASSWORD {password}",
            name,
            password=sql.Literal(encrypt_password(name, password)),
        )
    # As a rule everybody may, and the row of the database is not to be locked for nothing.
    for grant in (*(() if can_connect(name) else (GRANT_CONNECT_SQL,)), *GRANT_STATEMENTS):
        execute_role_statement(grant, name)
    return is_new


def create_role(name: str) -> bool:
    """Whether it was us: two machines may start at once."""
    try:
        with transaction.atomic():
            execute_role_statement(f"CREATE ROLE {{role}} {ROLE_ATTRIBUTES}", name)
    except DatabaseError:
        if get_role_flags(name) is None:
            raise
        return False
    return True


def can_connect(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_database_privilege(%s, current_database(), 'CONNECT')", [name])
        return bool(cursor.fetchone()[0])


def require_table_owner() -> None:
    if connection.vendor != "postgresql":
        raise UnsuitableRole("SQLite has no roles: there is nothing to prepare.")
    if is_role_restricted():
        raise UnsuitableRole("This is not the owner of the tables: name that role in DATABASE_URL.")


def encrypt_password(name: str, password: str) -> str:
    """As the server would keep it, so that its log never sees the password."""
    raw: Any = connection.connection
    return str(raw.pgconn.encrypt_password(password.encode(), name.encode()).decode())


def execute_role_statement(statement: str, name: str, **more: sql.Composable) -> None:
    words = {"role": sql.Identifier(name), **get_database_identifiers(), **more}
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(**words).as_string(connection.connection))


def get_database_identifiers() -> dict[str, sql.Composable]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_schema()")
        database, schema = cursor.fetchone()
    return {"database": sql.Identifier(database), "schema": sql.Identifier(schema)}
