"""Bodies without Content-Length, as of chunked requests, against the real server."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import Memory
from prompts.serving import ledger_writer
from tests.clients.live import HOST, LiveServer
from tests.factories import make_soul
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"Content-Type": "application/json"}
TEXT = "Prefers tea in the afternoon."


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = LiveServer(tmp_path_factory.mktemp("live") / "log")
    server.start()
    yield server
    server.kill()
    # Its connections close a little later, and a database in use cannot be dropped.
    wait_for(server.is_disconnected)


@pytest.fixture
def stage(workspace, server: LiveServer) -> Iterator[Stage]:
    yield make_stage(workspace)
    ledger_writer.PROCESS_WRITER.close()


@pytest.fixture
def send(stage: Stage, server: LiveServer, alice: Any) -> Any:
    _, secret = create_key(stage.workspace, "Editor", {}, kind=ADMIN, by=Actor.person(alice))

    def send_chunks(
        path: str, body: Any, method: str = "POST", secret: str = secret, **headers: str
    ) -> httpx.Response:
        data = json.dumps(body).encode()
        chunks = iter([data[:7], data[7:]])
        return httpx.request(
            method,
            f"{server.url}/api/v1/{path}",
            content=chunks,
            headers={**JSON, "Authorization": f"Bearer {secret}", **headers},
            trust_env=False,
        )

    return send_chunks


def test_a_chunked_body_is_read_by_every_kind_of_operation(stage, send):
    created = send("memories", {"text": TEXT})
    assert (created.status_code, created.json()["text"]) == (201, TEXT)
    path = f"memories/{created.json()['id']}"
    changed = send(path, {"text": "Likes cake."}, "PATCH", **{"If-Match": created.headers["ETag"]})
    assert (changed.status_code, changed.json()["text"]) == (200, "Likes cake.")
    rendered = send("agents/pilot/channels/deck/prompt:render", {"append": "Be brief."}, secret=stage.secret)
    assert "Be brief." in rendered.json()["text"]
    batch = send("prompts:batchGet", {"prompts": [{"agent": "pilot", "channel": "deck"}]})
    assert batch.json()["results"][0]["status"] == "served"


def test_a_retry_with_the_same_idempotency_key_may_be_chunked(stage, send):
    first, second = (send("memories", {"text": TEXT}, **{"Idempotency-Key": "tea"}) for _ in range(2))
    assert (first.json(), second.headers["Idempotency-Replayed"]) == (second.json(), "true")


def test_a_chunked_body_above_the_limit_is_rejected(stage, send):
    """The limit counts bytes that arrive, so one more than the limit is enough."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    for path in ("memories", "prompts:batchGet", "agents/pilot/channels/deck/prompt:render"):
        response = send(path, "x" * (limit - 1))
        assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
        assert str(limit) in response.json()["detail"]
        assert send(path, "x" * (limit - 2)).status_code == 422
    assert stage.rows == []


def test_a_chunked_body_without_a_valid_key_is_not_read(server, stage, send):
    response = send("memories", {"text": TEXT}, secret="drm_bot_none")
    assert response.status_code == 401
    with socket.create_connection((HOST, server.port), timeout=60) as client:
        client.sendall(
            b"POST /api/v1/memories HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/json\r\n\r\n7\r\n"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 401")


def test_a_connection_that_ends_early_creates_nothing(server, stage, alice):
    _, secret = create_key(stage.workspace, "Editor", {}, kind=ADMIN, by=Actor.person(alice))
    head = (
        f"POST /api/v1/memories HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
        "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
    )
    with socket.create_connection((HOST, server.port), timeout=60) as client:
        client.sendall(head.encode() + b'e\r\n{"text": "Half\r\n')
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100).startswith((b"HTTP/1.1 400", b""))
    assert not Memory.objects.in_workspace(stage.workspace).exists()


def send_file(server: LiveServer, secret: str, etag: str, headers: str, body: bytes) -> bytes:
    """PUT a file with raw headers, end the connection, and return the start of the response."""
    head = (
        f"PUT /api/v1/souls/kind/file HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: text/markdown\r\nIf-Match: {etag}\r\nConnection: close\r\n{headers}\r\n"
    )
    with socket.create_connection((HOST, server.port), timeout=60) as client:
        client.sendall(head.encode() + body)
        return client.recv(100)


def test_a_text_must_announce_its_length_or_be_empty(server, stage, alice):
    """Part of a text, also an empty part, must not replace a record if the connection is lost."""
    _, secret = create_key(stage.workspace, "Editor", {}, kind=ADMIN, by=Actor.person(alice))
    soul = make_soul(stage.workspace, "Kind")
    etag = httpx.get(
        f"{server.url}/api/v1/souls/kind", headers={"Authorization": f"Bearer {secret}"}, trust_env=False
    ).headers["ETag"]
    chunked = "Transfer-Encoding: chunked\r\n"
    for body in (b"4\r\nBe k\r\n0\r\n\r\n", b"0\r\n\r\n"):
        assert send_file(server, secret, etag, chunked, body).startswith(b"HTTP/1.1 400")
    soul.refresh_from_db()
    assert soul.text == "Be calm."
    assert send_file(server, secret, etag, "", b"").startswith(b"HTTP/1.1 200")
    soul.refresh_from_db()
    assert soul.text == ""


def test_a_request_without_a_body_is_an_empty_one(server, stage, send):
    response = httpx.post(f"{server.url}/api/v1/memories", headers=JSON, trust_env=False)
    assert response.status_code == 401
    empty = send("memories", {}).json()
    assert empty["code"] == "invalid"


def test_a_head_on_the_wire_has_no_body_and_no_length(server, stage):
    """The server must not announce the length of an empty body."""
    url = f"{server.url}/api/v1/agents/pilot/channels/deck/prompt"
    head = httpx.head(url, headers={"Authorization": f"Bearer {stage.secret}"}, trust_env=False)
    assert (head.status_code, head.content) == (200, b"")
    assert "Content-Length" not in head.headers
    assert head.headers["ETag"].startswith("W/")
    assert stage.rows == []


def test_a_fetch_with_a_body_has_the_same_limit(server, stage):
    url = f"{server.url}/api/v1/agents/pilot/channels/deck/prompt"
    headers = {"Authorization": f"Bearer {stage.secret}"}
    for size, status in ((0, 200), (10, 200), (2_000_000, 413)):
        response = httpx.request("GET", url, content=b"x" * size, headers=headers, trust_env=False)
        assert response.status_code == status
    assert len(stage.rows) == 2
