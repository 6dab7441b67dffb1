"""R7 without a server: during a database outage, pages and API return 503 with Retry-After."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError, connection
from django.test import Client

from personas.api import exception_handler
from personas.api_keys.format import generate_key_secret
from project import error_views

pytestmark = [pytest.mark.django_db, pytest.mark.promise("R7")]


@contextmanager
def failing(error: Exception) -> Iterator[None]:
    def raise_error(execute: Callable[..., Any], *_: Any) -> Any:
        raise error

    with connection.execute_wrapper(raise_error):
        yield


def get_during_outage(client: Client, path: str, error: Exception | None = None) -> Any:
    client.raise_request_exception = False
    with failing(error or OperationalError("the server closed the connection unexpectedly")):
        return client.get(path)


@pytest.mark.parametrize("path", ["/", "/profile/", "/w/harbour/agents/", "/api/v1/souls"])
def test_requests_during_a_database_outage_get_503_with_retry_after(as_alice, path):
    as_alice.defaults["HTTP_AUTHORIZATION"] = f"Bearer {generate_key_secret()}"
    answer = get_during_outage(as_alice, path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert b"closed the connection" not in answer.content


def test_the_outage_page_explains_the_outage(as_alice):
    answer = get_during_outage(as_alice, "/w/harbour/agents/")
    assert "Saved data is not lost" in answer.content.decode()


def test_other_database_errors_are_still_500(as_alice):
    assert (
        get_during_outage(as_alice, "/w/harbour/agents/", ProgrammingError("no such column")).status_code
        == 500
    )


@pytest.mark.planted
def test_an_outage_reported_as_500_is_found(as_alice, monkeypatch):
    monkeypatch.setattr(error_views, "exception_to_problem", lambda _: exception_handler.SERVER_ERROR_PROBLEM)
    assert get_during_outage(as_alice, "/w/harbour/agents/").status_code == 500
