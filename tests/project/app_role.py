"""The test's own connection, held by row security as production's is."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from project.postgres.telling import MARK
from project.walls.roles import flags_of, prepare_role


def role_name() -> str:
    """One for each database: roles belong to the server, which several runs of tests may share."""
    return f"app_of_{connection.settings_dict['NAME']}"


@contextmanager
def as_app_role() -> Iterator[str]:
    """Inside of the test's transaction, so that neither the role nor its grants are left."""
    name = role_name()
    if flags_of(name) is None:
        prepare_role(name)
    say(f'SET ROLE "{name}"')
    setattr(connection.connection, MARK, True)
    try:
        yield name
    finally:
        setattr(connection.connection, MARK, False)
        say("RESET ROLE")


def say(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
