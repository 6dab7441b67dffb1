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
    def refuse(execute: Callable[..., Any], *_: Any) -> Any:
        raise error

    with connection.execute_wrapper(refuse):
        yield


def asked(client: Client, path: str, error: Exception | None = None) -> Any:
    client.raise_request_exception = False
    with failing(error or OperationalError("the server closed the connection unexpectedly")):
        return client.get(path)


@pytest.mark.parametrize("path", ["/", "/profile/", "/w/harbour/agents/", "/api/v1/souls"])
def test_whoever_asks_while_the_database_is_away_is_told_to_come_again(as_alice, path):
    as_alice.defaults["HTTP_AUTHORIZATION"] = f"Bearer {generate_key_secret()}"
    answer = asked(as_alice, path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert b"closed the connection" not in answer.content


def test_a_page_says_so_in_words(as_alice):
    answer = asked(as_alice, "/w/harbour/agents/")
    assert "Nothing that was saved is lost" in answer.content.decode()


def test_a_fault_of_ours_is_still_a_fault(as_alice):
    assert asked(as_alice, "/w/harbour/agents/", ProgrammingError("no such column")).status_code == 500


@pytest.mark.planted
def test_a_page_that_is_not_told_apart_is_found(as_alice, monkeypatch):
    monkeypatch.setattr(error_views, "exception_to_problem", lambda _: exception_handler.SERVER_ERROR_PROBLEM)
    assert asked(as_alice, "/w/harbour/agents/").status_code == 500
