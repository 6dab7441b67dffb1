"""R12: retries with an Idempotency-Key create one record; another body gets 422, a running request 409."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from threading import Barrier, Event
from typing import Any

import pytest
import time_machine
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from personas.api import idempotency
from personas.models import ApiKey, KeptAnswer, Memory, Soul, Workspace
from tests.api_client import Api

KEYS, EACH = 3, 10
HARD_KEYS = 100


@pytest.mark.django_db
def test_a_retry_gets_the_first_response(admin: Api, workspace: Workspace) -> None:
    first = admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
    again = admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again["ETag"] == first["ETag"]
    assert again["Idempotency-Replayed"] == "true"
    assert Soul.objects.in_workspace(workspace).count() == 1


@pytest.mark.promise("R12")
@pytest.mark.django_db
def test_another_body_is_refused(admin: Api) -> None:
    admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
    other = admin.post("souls", {"label": "Wild"}, Idempotency_Key="one")
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


@pytest.mark.django_db
def test_idempotency_keys_are_separate_per_url(admin: Api) -> None:
    assert admin.post("souls", {"label": "Calm"}, Idempotency_Key="one").status_code == 201
    assert admin.post("identities", {"label": "Fox"}, Idempotency_Key="one").status_code == 201


@pytest.mark.django_db
def test_an_error_response_is_not_stored(admin: Api, workspace: Workspace) -> None:
    assert admin.post("agents", {"slug": "new", "name": "N"}, Idempotency_Key="one").status_code == 422
    assert not KeptAnswer.objects.in_workspace(workspace).exists()


@pytest.mark.django_db
def test_responses_are_stored_for_a_day(admin: Api, workspace: Workspace) -> None:
    with time_machine.travel(timezone.now() - timedelta(hours=25)):
        admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
    admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
    assert Soul.objects.in_workspace(workspace).count() == 2
    assert idempotency.delete_expired_responses(timedelta()) == 1


@pytest.mark.django_db
def test_a_secret_is_not_stored(admin: Api, workspace: Workspace) -> None:
    first = admin.post("keys", {"name": "Desk"}, Idempotency_Key="one").json()
    again = admin.post("keys", {"name": "Desk"}, Idempotency_Key="one").json()
    assert first["secret"].startswith("drm_bot_")
    assert again == first | {"secret": None}
    assert first["secret"].encode() not in bytes(KeptAnswer.objects.in_workspace(workspace).get().body)
    assert ApiKey.objects.in_workspace(workspace).filter(name="Desk").count() == 1


def route_of(admin: Api, workspace: Workspace) -> str:
    key = ApiKey.objects.in_workspace(workspace).get()
    return sha256(f"{key.pk} POST /api/v1/souls".encode()).hexdigest()


def remember(api: Api, number: int, barrier: Barrier) -> tuple[int, bytes]:
    """Send the same POST as nine other threads; retry on 409, as the guide says."""
    barrier.wait()
    try:
        for _ in range(500):
            answer = api.post("memories", {"text": f"Fact {number}."}, Idempotency_Key=f"fact-{number}")
            if answer.status_code != 409:
                break
            # An immediate retry would only slow down the first request.
            time.sleep(0.01)
        return answer.status_code, answer.content
    finally:
        connections.close_all()


@pytest.mark.promise("R12")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("keys", [KEYS, pytest.param(HARD_KEYS, marks=pytest.mark.hard)])
def test_ten_posts_with_one_idempotency_key_create_one_record(
    keys: int, admin: Api, workspace: Workspace, settings: Any
) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"write": (100_000, 100_000)}
    # Reuse the ten clients: building the middleware takes as long as a request.
    apis = [Api(admin.secret, Client(raise_request_exception=False)) for _ in range(EACH)]
    with ThreadPoolExecutor(EACH) as pool:
        for number in range(keys):
            barrier = Barrier(EACH)
            calls = [pool.submit(remember, api, number, barrier) for api in apis]
            assert len({call.result() for call in calls}) == 1
    texts = list(Memory.objects.in_workspace(workspace).values_list("text", flat=True))
    assert sorted(texts) == sorted(f"Fact {number}." for number in range(keys))


@pytest.mark.promise("R12", "another body 422, still running 409")
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="on SQLite the second writer waits for the first"
)
def test_a_retry_of_a_running_request_gets_409(admin: Api, workspace: Workspace) -> None:
    is_held, may_go = Event(), Event()

    def hold() -> None:
        with transaction.atomic():
            idempotency.lock_idempotency_key(workspace, route_of(admin, workspace), "one")
            is_held.set()
            may_go.wait(30)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        is_held.wait(30)
        answer = admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
        may_go.set()
        holding.result()
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (409, "in_progress", "1")
    assert admin.post("souls", {"label": "Calm"}, Idempotency_Key="one").status_code == 201


@pytest.mark.promise("R12")
@pytest.mark.planted
@pytest.mark.django_db
def test_without_the_stored_response_a_retry_creates_two_records(
    admin: Api, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "store_response", lambda *args: None)
    for _ in range(2):
        admin.post("souls", {"label": "Calm"}, Idempotency_Key="one")
    assert Soul.objects.in_workspace(workspace).count() == 2
