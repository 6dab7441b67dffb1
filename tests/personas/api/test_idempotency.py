"""R12: retries with an Idempotency-Key create one record; another body gets 422, a running request 409."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import httpx
import pytest
import time_machine
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from personas.actors import Actor
from personas.api import idempotency
from personas.erasure import services as erasure_services
from personas.erasure.services import erase_record_text
from personas.models import ApiKey, IdempotentResponse, Memory, Soul, Workspace
from tests.api_client import Api
from tests.clients.live import LiveServer

KEYS, EACH = 3, 10
HARD_KEYS = 100


@pytest.mark.django_db
def test_a_retry_gets_the_first_response(admin: Api, workspace: Workspace) -> None:
    first = admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
    again = admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again["ETag"] == first["ETag"]
    assert again["Idempotency-Replayed"] == "true"
    assert Soul.objects.in_workspace(workspace).count() == 1


@pytest.mark.promise("R12")
@pytest.mark.django_db
def test_another_body_is_refused(admin: Api) -> None:
    admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
    other = admin.post("souls", {"name": "Wild"}, Idempotency_Key="one")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    "body",
    [
        b'{"text":"Hello.","name":"Calm"}',
        b'{\n  "name": "Calm",\n  "text": "Hello."\n}',
        b'{"name": "\\u0043alm", "text": "Hello."}',
    ],
)
@pytest.mark.django_db
def test_a_body_that_is_written_differently_is_the_same_request(
    admin: Api, workspace: Workspace, body: bytes
) -> None:
    first = admin.post("souls", {"name": "Calm", "text": "Hello."}, Idempotency_Key="one")
    again = admin.post("souls", body, Idempotency_Key="one")
    assert (again.status_code, again.content) == (201, first.content)
    assert again["Idempotency-Replayed"] == "true"
    assert Soul.objects.in_workspace(workspace).count() == 1


@pytest.mark.parametrize(
    ("first", "other"),
    [([1, 2], [2, 1]), ({"a": 1}, {"a": "1"}), ({"a": None}, {}), ({"a": True}, {"a": 1})],
)
def test_other_content_has_another_digest(first: Any, other: Any) -> None:
    assert idempotency.compute_content_digest(first) != idempotency.compute_content_digest(other)


@pytest.mark.django_db
def test_other_query_parameters_are_another_request(admin: Api) -> None:
    created = admin.post("keys", {"name": "Desk"}).json()
    path = f"keys/{created['id']}:revoke"
    assert admin.post(path, Idempotency_Key="one").status_code == 204
    other = admin.post(f"{path}?with_created=true", Idempotency_Key="one")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.django_db
def test_idempotency_keys_are_separate_per_url(admin: Api) -> None:
    assert admin.post("souls", {"name": "Calm"}, Idempotency_Key="one").status_code == 201
    assert admin.post("identities", {"name": "Fox"}, Idempotency_Key="one").status_code == 201


@pytest.mark.django_db
def test_an_error_response_is_not_stored(admin: Api, workspace: Workspace) -> None:
    assert admin.post("agents", {"slug": "new", "name": "N"}, Idempotency_Key="one").status_code == 422
    assert not IdempotentResponse.objects.in_workspace(workspace).exists()


@pytest.mark.django_db
def test_responses_are_stored_for_a_day(admin: Api, workspace: Workspace) -> None:
    with time_machine.travel(timezone.now() - timedelta(hours=25)):
        admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
    admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
    assert Soul.objects.in_workspace(workspace).count() == 2
    assert idempotency.delete_expired_responses(timedelta()) == 1


@pytest.mark.django_db
def test_a_secret_is_not_stored(admin: Api, workspace: Workspace) -> None:
    first = admin.post("keys", {"name": "Desk"}, Idempotency_Key="one").json()
    again = admin.post("keys", {"name": "Desk"}, Idempotency_Key="one").json()
    assert first["secret"].startswith("drm_bot_")
    assert again == first | {"secret": None}
    assert first["secret"].encode() not in bytes(
        IdempotentResponse.objects.in_workspace(workspace).get().body
    )
    assert ApiKey.objects.in_workspace(workspace).filter(name="Desk").count() == 1


def route_of(admin: Api, workspace: Workspace) -> str:
    key = ApiKey.objects.in_workspace(workspace).get()
    return sha256(f"{key.pk} POST /api/v1/souls".encode()).hexdigest()


class OneRecordPerKey:
    """Ten threads that send the same POST at once and retry on 409, as the guide says."""

    def __init__(self, send: Sequence[Callable[[str, str], tuple[int, bytes]]], pause: float) -> None:
        # Pause before a retry: an immediate one would only slow down the first request.
        self.send, self.pause = send, pause
        self.barrier = Barrier(EACH)
        # The number of the key for each response 409.
        self.conflicts: list[int] = []

    def remember(self, who: int, number: int) -> tuple[int, bytes]:
        self.barrier.wait()
        try:
            for _ in range(500):
                status, body = self.send[who](f"Fact {number}.", f"fact-{number}")
                if status != 409:
                    break
                self.conflicts.append(number)
                time.sleep(self.pause)
            return status, body
        finally:
            connections.close_all()

    def run(self, keys: int) -> None:
        with ThreadPoolExecutor(EACH) as pool:
            for number in range(keys):
                calls = [pool.submit(self.remember, who, number) for who in range(EACH)]
                assert len({call.result() for call in calls}) == 1


def list_texts(workspace: Workspace) -> list[str]:
    return sorted(Memory.objects.in_workspace(workspace).values_list("text", flat=True))


@pytest.mark.slow
@pytest.mark.promise("R12")
@pytest.mark.django_db(transaction=True)
def test_ten_posts_with_one_idempotency_key_create_one_record(admin: Api, workspace: Workspace) -> None:
    def sender(api: Api) -> Callable[[str, str], tuple[int, bytes]]:
        def send(text: str, key: str) -> tuple[int, bytes]:
            answer = api.post("memories", {"text": text}, Idempotency_Key=key)
            return answer.status_code, answer.content

        return send

    # Reuse the ten clients: building the middleware takes as long as a request.
    apis = [Api(admin.secret, Client(raise_request_exception=False)) for _ in range(EACH)]
    OneRecordPerKey([sender(api) for api in apis], pause=0.01).run(KEYS)
    assert list_texts(workspace) == sorted(f"Fact {number}." for number in range(KEYS))


@pytest.fixture
def two_processes(tmp_path: Path) -> Iterator[list[str]]:
    """Two servers without rate limits, which share nothing but the database."""
    servers = [LiveServer(tmp_path / f"{number}.log", fault="no_fault") for number in range(2)]
    try:
        for server in servers:
            server.start()
        yield [server.url for server in servers]
    finally:
        for server in servers:
            server.kill()


@pytest.mark.hard
@pytest.mark.promise("R12")
@pytest.mark.django_db(transaction=True)
def test_ten_posts_to_two_processes_create_one_record(
    admin: Api, workspace: Workspace, two_processes: list[str], record_property: Any
) -> None:
    def sender(client: httpx.Client) -> Callable[[str, str], tuple[int, bytes]]:
        def send(text: str, key: str) -> tuple[int, bytes]:
            answer = client.post("/api/v1/memories", json={"text": text}, headers={"Idempotency-Key": key})
            return answer.status_code, answer.content

        return send

    headers = {"Authorization": f"Bearer {admin.secret}"}
    clients = [
        httpx.Client(base_url=two_processes[number % 2], headers=headers, timeout=30)
        for number in range(EACH)
    ]
    posts = OneRecordPerKey([sender(client) for client in clients], pause=0.1)
    posts.run(HARD_KEYS)
    for client in clients:
        client.close()
    texts = list_texts(workspace)
    record_property(
        "measured",
        f"{HARD_KEYS} keys × {EACH} posts at once to 2 processes: {len(texts)} records, "
        f"{len(posts.conflicts)} responses 409 while the first was running",
    )
    assert texts == sorted(f"Fact {number}." for number in range(HARD_KEYS))


# --- erasure -------------------------------------------------------------------------------------------


def retry_after_erasure(admin: Api, workspace: Workspace, by: Actor) -> list[int]:
    """Create two memories, erase the first, and send both requests again; return the statuses."""
    texts = {"one": "Was born in Bergen.", "two": "Likes tea."}
    ids = [admin.post("memories", {"text": texts[key]}, Idempotency_Key=key).json()["id"] for key in texts]
    erase_record_text(Memory.objects.in_workspace(workspace).get(pk=ids[0]), reason="Asked", by=by)
    answers = [admin.post("memories", {"text": texts[key]}, Idempotency_Key=key) for key in texts]
    return [answer.status_code for answer in answers]


@pytest.mark.promise("R12")
@pytest.mark.django_db
def test_a_retry_after_an_erasure_creates_no_second_record(
    admin: Api, workspace: Workspace, by_alice: Actor
) -> None:
    assert retry_after_erasure(admin, workspace, by_alice) == [410, 201]
    assert Memory.objects.in_workspace(workspace).count() == 2
    stored = b"".join(bytes(row.body) for row in IdempotentResponse.objects.in_workspace(workspace))
    assert b"Bergen" not in stored


@pytest.mark.promise("R12")
@pytest.mark.planted
@pytest.mark.django_db
def test_an_erasure_that_deletes_stored_responses_is_found(
    admin: Api, workspace: Workspace, by_alice: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete_all(workspace_id: int, texts: object) -> None:
        IdempotentResponse.objects.in_workspace(workspace_id).delete()

    monkeypatch.setattr(erasure_services, "blank_stored_responses", delete_all)
    assert retry_after_erasure(admin, workspace, by_alice) == [201, 201]
    assert Memory.objects.in_workspace(workspace).count() == 4


@pytest.mark.promise("R12", "another body 422, still running 409")
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="on SQLite the second writer waits for the first"
)
def test_a_retry_of_a_running_request_gets_409(admin: Api, workspace: Workspace) -> None:
    is_pinned, may_go = Event(), Event()

    def hold() -> None:
        with transaction.atomic():
            idempotency.lock_idempotency_key(workspace, route_of(admin, workspace), "one")
            is_pinned.set()
            may_go.wait(30)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        is_pinned.wait(30)
        answer = admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
        may_go.set()
        holding.result()
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (409, "in_progress", "1")
    assert admin.post("souls", {"name": "Calm"}, Idempotency_Key="one").status_code == 201


@pytest.mark.promise("R12")
@pytest.mark.planted
@pytest.mark.django_db
def test_without_the_stored_response_a_retry_creates_two_records(
    admin: Api, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "store_response", lambda *args: None)
    for _ in range(2):
        admin.post("souls", {"name": "Calm"}, Idempotency_Key="one")
    assert Soul.objects.in_workspace(workspace).count() == 2
