"""API client for tests: sends JSON with a key."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from personas.actors import Actor
from personas.api import rate_limits
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.services import create_key
from personas.models import User, Workspace

V1 = "/api/v1/"


@dataclass
class Api:
    """A key and a test client that sends it."""

    secret: str
    client: Client

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        auth_headers = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        url = path if path.startswith("/") else V1 + path
        content_type = headers.pop("content_type", "application/json")
        other_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(
            method, url, data, content_type=content_type, headers=auth_headers | other_headers
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, {} if body is None else body, **headers)

    def patch(self, path: str, body: Any, etag: str) -> Any:
        return self.call("PATCH", path, body, If_Match=etag)

    def delete(self, path: str, etag: str) -> Any:
        return self.call("DELETE", path, If_Match=etag)


@pytest.fixture(autouse=True)
def full_budgets() -> None:
    rate_limits.PROCESS_LIMITER.clear()


@pytest.fixture
def key_for(client: Client) -> Callable[..., Api]:
    """Return a factory of keys, each with its client."""
    count = 0

    def make(workspace: Workspace, by: User, kind: str = ADMIN, **scopes: Any) -> Api:
        nonlocal count
        count += 1
        _, secret = create_key(workspace, f"Key {count}", scopes, by=Actor.person(by), kind=kind)
        return Api(secret, Client(raise_request_exception=False))

    return make


@pytest.fixture
def admin(key_for: Callable[..., Api], workspace: Workspace, alice: User) -> Api:
    return key_for(workspace, alice)


@pytest.fixture
def bot(key_for: Callable[..., Api], workspace: Workspace, alice: User) -> Api:
    return key_for(workspace, alice, BOT)
