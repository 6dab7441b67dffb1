"""A database outage while a session is saved leads to 503, not to the 400 of a deleted session."""

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
    """Return a client whose every request saves the session."""
    settings.SESSION_TOUCH_SECONDS = -3_600
    client = signed_in(alice)
    client.raise_request_exception = False
    return client


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_database_outage_leads_to_503_with_retry_after(visitor):
    """Without a transaction of the test, because a failed connection is closed."""
    with connection.execute_wrapper(away):
        answer = visitor.get(PAGE)
    assert (answer.status_code, bool(answer.headers.get("Retry-After"))) == (503, True)
    assert visitor.get(PAGE).status_code == 200


@pytest.mark.django_db
@pytest.mark.planted
def test_the_session_store_of_django_responds_with_400(visitor, settings):
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
