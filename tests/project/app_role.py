"""The test's own connection, held by row security as production's is."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import OperationalError, connection, transaction

from project.postgres.telling import MARK
from project.walls.roles import flags_of, prepare_role

TRIES = 5


def role_name() -> str:
    """One for each database: roles belong to the server, which several runs of tests may share."""
    return f"app_of_{connection.settings_dict['NAME']}"


@contextmanager
def as_app_role() -> Iterator[str]:
    """Inside of the test's transaction, so that neither the role nor its grants are left."""
    name = role_name()
    if flags_of(name) is None:
        prepare_patiently(name)
    say(f'SET ROLE "{name}"')
    setattr(connection.connection, MARK, True)
    try:
        yield name
    finally:
        setattr(connection.connection, MARK, False)
        say("RESET ROLE")


def prepare_patiently(name: str) -> None:
    """In a long transaction rights are given again and again while the server looks at its tables."""
    for _ in range(TRIES - 1):
        with suppress(OperationalError), transaction.atomic():
            prepare_role(name)
            return
    prepare_role(name)


def say(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
