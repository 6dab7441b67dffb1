"""Checks of `manage.py doctor` for a pooler such as PgBouncer in front of the database."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection

from project.database.config import build_limits
from project.database.postgresql.base import DatabaseWrapper
from project.database.postgresql.rls_cursor import is_connection_restricted
from project.doctor.results import DoctorFinding, report_failure, report_ok, report_warning

POOLER_CHECK = "pooler"
# Returns the same row on all connections that lead to the same database.
SAME_DATABASE_SQL = """
SELECT pg_postmaster_start_time()::text, current_database()::text,
to_regclass('personas_workspace')::oid::text
"""
LIMIT_NAMES = tuple(build_limits(0))
REFUSED_OPTIONS = "unsupported startup parameter"
TWO_URLS_ADVICE = "Set DATABASE_URL to the server itself, and DATABASE_POOLED_URL to the pooler."


def check_pooler() -> Iterator[DoctorFinding]:
    """Check that DATABASE_URL leads to the server itself, and DATABASE_POOLED_URL to the same database."""
    if connection.vendor != "postgresql":
        return
    with closing(open_wrapper(connection.settings_dict)) as direct:
        try:
            has_pooler = is_behind_pooler(direct)
        except OperationalError as error:
            if REFUSED_OPTIONS not in str(error):
                raise
            has_pooler = True
        if has_pooler:
            yield report_failure(POOLER_CHECK, "DATABASE_URL points to a pooler.", TWO_URLS_ADVICE)
        elif (config := settings.DATABASE_POOLED) is not None:
            yield from check_pooled_url(direct, config)


def open_wrapper(config: dict[str, Any]) -> Any:
    """Return a wrapper whose connection does not come from psycopg's pool, which would hide errors."""
    options = {name: value for name, value in config["OPTIONS"].items() if name != "pool"}
    return DatabaseWrapper({**connection.settings_dict, **config, "OPTIONS": options}, alias="doctor")


def is_behind_pooler(wrapper: Any) -> bool:
    """Return whether there is a pooler: it gives its clients a process id that is not the server's."""
    wrapper.ensure_connection()
    return bool(wrapper.connection.info.backend_pid != fetch_row(wrapper, "SELECT pg_backend_pid()")[0])


def check_pooled_url(direct: Any, config: dict[str, Any]) -> Iterator[DoctorFinding]:
    with closing(open_wrapper(config)) as pooled:
        try:
            yield from check_pooled_connection(direct, pooled)
        except OperationalError as error:
            yield report_failure(
                POOLER_CHECK,
                f"DATABASE_POOLED_URL does not respond ({type(error).__name__}).",
                "Start the pooler, or fix DATABASE_POOLED_URL. Until then, no prompt is served.",
            )


def check_pooled_connection(direct: Any, pooled: Any) -> Iterator[DoctorFinding]:
    if fetch_row(pooled, SAME_DATABASE_SQL) != fetch_row(direct, SAME_DATABASE_SQL):
        yield report_failure(
            POOLER_CHECK,
            "DATABASE_POOLED_URL points to a different database than DATABASE_URL.",
            "Fix [databases] in the pooler's configuration, or DATABASE_POOLED_URL.",
        )
        return
    user = fetch_row(pooled, "SELECT current_user::text")[0]
    missing = [name for name in LIMIT_NAMES if fetch_row(pooled, f"SHOW {name}")[0] == "0"]
    if missing:
        yield report_warning(
            POOLER_CHECK,
            f"Through the pooler, {user} has no {', '.join(missing)}.",
            (
                f"Run manage.py create_db_role {user} as the owner of the tables, then RECONNECT in the "
                "pooler's console."
            ),
        )
    if is_connection_restricted(direct.connection) and not is_connection_restricted(pooled.connection):
        yield report_warning(
            POOLER_CHECK,
            f"Row-level security does not restrict {user}, the role in DATABASE_POOLED_URL.",
            "Use the role of DATABASE_URL.",
        )
    elif not missing:
        yield report_ok(POOLER_CHECK, f"Web and workers connect through the pooler as {user}.")


def fetch_row(wrapper: Any, query: str) -> tuple[Any, ...]:
    with wrapper.cursor() as cursor:
        cursor.execute(query)
        return tuple(cursor.fetchone())
