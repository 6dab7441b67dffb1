"""A database that goes away while a session is saved is told as such, and not as a log-in that has ended."""

from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client

from tests.factories import signed_in

PAGE = "/profile/"


def away(execute: Any, sql: str, *rest: Any) -> Any:
    if sql.startswith("UPDATE") and "django_session" in sql:
        raise OperationalError("the connection is lost")
    return execute(sql, *rest)


@pytest.fixture
def visitor(alice, settings) -> Client:
    """Every page is a use that is noted."""
    settings.SESSION_TOUCH_SECONDS = -3_600
    client = signed_in(alice)
    client.raise_request_exception = False
    return client


@pytest.mark.django_db(transaction=True)
def test_who_is_seen_while_the_database_goes_is_told_to_come_again(visitor):
    """In no transaction of the test's: a connection that has failed is given up."""
    with connection.execute_wrapper(away):
        answer = visitor.get(PAGE)
    assert (answer.status_code, bool(answer.headers.get("Retry-After"))) == (503, True)
    assert visitor.get(PAGE).status_code == 200


@pytest.mark.django_db
@pytest.mark.planted
def test_the_store_of_django_says_something_else(visitor, settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.db"
    with connection.execute_wrapper(away):
        assert visitor.get(PAGE).status_code == 400


@pytest.mark.django_db
def test_a_session_that_was_ended_meanwhile_is_ended(visitor):
    def gone(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE") and "django_session" in sql:
            Session.objects.all().delete()
        return execute(sql, *rest)

    with connection.execute_wrapper(gone):
        assert visitor.get(PAGE).status_code == 400
