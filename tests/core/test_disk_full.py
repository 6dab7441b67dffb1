"""A database without room on its disk is answered with 503 and the reason."""

import sqlite3

import pytest
from django.db import OperationalError, connection

from core.db.disk_full import DISK_FULL_SQLSTATE, is_disk_full
from personas.api.exception_handler import exception_to_problem
from project.error_views import server_error


def raise_sqlite_full() -> None:
    """Fill a database that may have four pages, and raise what Django would."""
    with sqlite3.connect(":memory:") as file:
        file.execute("PRAGMA max_page_count = 4")
        file.execute("CREATE TABLE note (text)")
        try:
            file.execute("INSERT INTO note VALUES (?)", ["x" * 100_000])
        except sqlite3.OperationalError as error:
            raise OperationalError(str(error)) from error


def raise_postgres_error(sqlstate: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$")


def test_a_full_sqlite_file_is_recognised():
    with pytest.raises(OperationalError) as raised:
        raise_sqlite_full()
    assert is_disk_full(raised.value)


@pytest.mark.django_db
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs the error codes of PostgreSQL")
def test_a_full_disk_of_postgresql_is_recognised():
    with pytest.raises(OperationalError) as raised:
        raise_postgres_error(DISK_FULL_SQLSTATE)
    assert is_disk_full(raised.value)


@pytest.mark.django_db
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs the error codes of PostgreSQL")
def test_another_lack_of_resources_is_no_full_disk():
    with pytest.raises(OperationalError) as raised:
        raise_postgres_error("53200")
    assert not is_disk_full(raised.value)
    assert exception_to_problem(raised.value).code == "unavailable"


def test_the_problem_has_the_reason_and_a_time_to_retry():
    with pytest.raises(OperationalError) as raised:
        raise_sqlite_full()
    problem = exception_to_problem(raised.value)
    assert (problem.status, problem.code, problem.headers["Retry-After"]) == (503, "storage_full", "30")


def test_a_page_says_that_the_disk_is_full(rf):
    try:
        raise_sqlite_full()
    except OperationalError:
        response = server_error(rf.get("/w/harbour/"))
    assert (response.status_code, response["Retry-After"]) == (503, "30")
    assert "database disk is full" in response.content.decode()
