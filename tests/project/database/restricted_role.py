"""Restrict the connection of a test by row-level security, as in production."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.db import connection

from project.database.postgresql.rls_cursor import RESTRICTED_ATTRIBUTE
from project.database.roles import get_role_flags, prepare_role

# One table is enough: a role that may read it has all privileges.
GRANTED = "SELECT has_table_privilege(%s, 'personas_soul', 'SELECT')"


def role_name() -> str:
    """Return one name per database: roles belong to the server, which several test runs may share."""
    return f"app_of_{connection.settings_dict['NAME']}"


@contextmanager
def as_app_role() -> Iterator[str]:
    """Use the restricted role; it is kept with its privileges for later tests."""
    name = role_name()
    if get_role_flags(name) is None or not is_granted(name):
        prepare_apart(name)
    execute_sql(f'SET ROLE "{name}"')
    setattr(connection.connection, RESTRICTED_ATTRIBUTE, True)
    try:
        yield name
    finally:
        setattr(connection.connection, RESTRICTED_ATTRIBUTE, False)
        execute_sql("RESET ROLE")


def is_granted(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(GRANTED, [name])
        return bool(cursor.fetchone()[0])


def prepare_apart(name: str) -> None:
    """Prepare the role on a separate connection that commits immediately.

    GRANT in a long transaction and autovacuum would wait for each other.
    """

    def prepare() -> None:
        try:
            prepare_role(name)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as apart:
        apart.submit(prepare).result()


def execute_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
