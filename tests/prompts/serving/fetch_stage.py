"""Asking for prompts by the two doors, as a bot would."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.test import Client

from project.fetch_fast_path import FetchFastPath
from tests.prompts.serving.serving_stage import Stage

ADDRESS = "/api/v1/agents/pilot/prompt"


@dataclass
class Heard:
    """An answer, whichever door it came by."""

    status: int
    headers: dict[str, str]
    body: bytes
    was_passed_on: bool = False


def by_fast_door(method: str = "GET", path: str = ADDRESS, query: str = "channel=deck", **said: Any) -> Heard:
    """`said` are headers as CGI names them, without HTTP_."""
    heard: dict[str, Any] = {}
    passed: list[str] = []

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        heard["status"], heard["headers"] = int(status[:3]), dict(headers)
        assert len(heard["headers"]) == len(headers), "a header stands twice"

    def beyond(environ: dict[str, Any], start: Any) -> list[bytes]:
        passed.append(environ["PATH_INFO"])
        start("204 No Content", [])
        return [b""]

    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    environ |= {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "wsgi.input": BytesIO()}
    environ |= {"HTTP_HOST": "localhost", **{f"HTTP_{name}": value for name, value in said.items()}}
    body = b"".join(FetchFastPath(beyond)(environ, start))
    return Heard(heard["status"], heard["headers"], body, bool(passed))


def by_django(method: str = "GET", path: str = ADDRESS, query: str = "channel=deck", **said: Any) -> Heard:
    headers = {f"HTTP_{name}": value for name, value in said.items()}
    answer = Client().generic(method, f"{path}?{query}" if query else path, HTTP_HOST="localhost", **headers)
    said = dict(answer.headers)
    # The request log looks at the session, and Django says so; no cookie has a say in the answer.
    said["Vary"] = said["Vary"].removesuffix(", Cookie")
    if answer.status_code == 304:
        # Counted by Django's middleware; there is nothing to count.
        said.pop("Content-Length", None)
    return Heard(answer.status_code, said, answer.content)


def bearer(secret: str) -> str:
    return f"Bearer {secret}"


DOORS = [by_fast_door, by_django]
both_doors = pytest.mark.parametrize("door", DOORS, ids=["fast", "django"])


def ask(door: Callable[..., Heard], stage: Stage, **asked: Any) -> Heard:
    asked.setdefault("AUTHORIZATION", bearer(stage.secret))
    return door(**asked)


def problem(heard: Heard) -> Any:
    assert heard.headers["Content-Type"] == "application/problem+json"
    said = json.loads(heard.body)
    assert said["status"] == heard.status
    assert said["request_id"] == heard.headers["X-Request-ID"]
    return said
