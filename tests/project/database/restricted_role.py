"""The test's own connection, held by row security as production's is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.db import connection

from project.database.postgresql.rls_cursor import RESTRICTED_ATTRIBUTE
from project.database.roles import get_role_flags, prepare_role

# Of any table: who may read this one was given all the rights.
GRANTED = "SELECT has_table_privilege(%s, 'personas_soul', 'SELECT')"


def role_name() -> str:
    """One for each database: roles belong to the server, which several runs of tests may share."""
    return f"app_of_{connection.settings_dict['NAME']}"


@contextmanager
def as_app_role() -> Iterator[str]:
    """The role stays, with its rights, for the tests that come after."""
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
    """On a connection of its own, committed at once.

    Rights that a long transaction gives, and gives again, and the server's cleaning wait for each other.
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
