"""The second wall: whether the database itself keeps workspaces apart."""

from collections.abc import Iterator

from django.conf import settings
from django.db import connection

from project.database.rls_audit import open_tables
from project.database.roles import is_held
from project.doctor.results import Finding, fail, ok, warn

NAME = "second wall"
ABSENT = "It is not in force: queries alone keep workspaces apart."


def look_at_walls() -> Iterator[Finding]:
    if connection.vendor != "postgresql":
        yield absent("Use PostgreSQL; SQLite has no roles.")
        return
    if holes := open_tables():
        yield fail(NAME, f"{len(holes)} holes, the first in {holes[0]}.", "Run manage.py migrate as owner.")
    elif is_held():
        yield ok(NAME, "The database shows each request the rows of its own workspace only.")
    else:
        yield absent("Make a role with manage.py app_role, and name it in DATABASE_URL.")


def absent(advice: str) -> Finding:
    return warn(NAME, ABSENT, advice) if settings.PRODUCTION else ok(NAME, ABSENT)
