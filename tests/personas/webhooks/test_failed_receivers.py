"""Receivers and parts of the installation that fail: what is tried again, and that no event is lost."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from core.db.disk_full import DISK_FULL_SQLSTATE
from core.outgoing.http_sender import HttpSender, OutgoingPolicy
from personas.accounts.encryption import encrypt_secret
from personas.events.selectors import list_events_after
from personas.events.services import record_event
from personas.models import (
    DeliveryStatus,
    EndpointStatus,
    Event,
    Memory,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
)
from personas.webhooks import deliver, fan_out
from personas.webhooks.retries import MAX_RETRY_AFTER, RETRY_DELAYS, parse_retry_after
from tests.personas.webhooks.hostile_receivers import OVERFLOW_DATE
from tests.personas.webhooks.receivers import Answer, receiving
from tests.personas.webhooks.test_deliveries import (  # noqa: F401  # one is a fixture
    local_receivers,
    make_endpoint,
    move,
    run,
)

pytestmark = pytest.mark.django_db(transaction=True)
# What a receiver does, and the statuses of endpoint and delivery afterwards.
# How long a request to a receiver that hangs takes; the others do not wait for it.
HANG_SECONDS = 8
FAILURES = {
    "hangs": (Answer(wait=30), EndpointStatus.ENABLED, DeliveryStatus.PENDING),
    "500": (Answer(500), EndpointStatus.ENABLED, DeliveryStatus.PENDING),
    "302": (Answer(302, {"Location": "http://127.0.0.1:1/"}), EndpointStatus.ENABLED, DeliveryStatus.PENDING),
    "404": (Answer(404), EndpointStatus.ENABLED, DeliveryStatus.PENDING),
    "410": (Answer(410), EndpointStatus.GONE, None),
    "429": (Answer(429, {"Retry-After": "60"}), EndpointStatus.ENABLED, DeliveryStatus.PENDING),
}


def check_failure(workspace: Any, elsewhere: Any, name: str) -> None:
    """Send five events to a receiver that fails and to two others, one of them of another workspace."""
    answer, endpoint_status, delivery_status = FAILURES[name]
    with receiving(answer) as failing, receiving() as good:
        endpoint, _ = make_endpoint(workspace, failing.url, "Failing")
        make_endpoint(workspace, good.url, "Good")
        make_endpoint(elsewhere, good.url, "Other")
        for _ in range(5):
            move(workspace)
            move(elsewhere)
        began = time.monotonic()
        # On a slow machine its pause of a second would otherwise end before the others have all events.
        with time_machine.travel(timezone.now(), tick=False):
            run(sender=HttpSender(OutgoingPolicy.from_settings(), total_seconds=HANG_SECONDS))
        moved = [request for request in good.received if request.event["type"] == "label.moved"]
        assert len(moved) == 10
        assert max(request.at for request in moved) - began < HANG_SECONDS
        # After a failure, it is left alone for a while.
        assert len(failing.received) == 1
    endpoint.refresh_from_db()
    assert endpoint.status == endpoint_status
    first = WebhookDelivery.objects.in_workspace(workspace).filter(endpoint=endpoint).order_by("pk")[0]
    assert first.attempt_count == 1
    assert delivery_status is None or first.status == delivery_status


@pytest.mark.parametrize("name", FAILURES)
def test_a_receiver_that_fails_is_left_alone_and_others_get_their_events(workspace, elsewhere, name):
    check_failure(workspace, elsewhere, name)


def test_without_redis_events_are_stored_and_delivered_from_the_database(workspace, admin, settings):
    """Nothing listens at this address: the job that delivers starts later, and finds its work."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with receiving() as receiver:
        make_endpoint(workspace, receiver.url)
        assert admin.post("memories", {"text": "Likes tea."}).status_code == 201
        [event] = Event.objects.in_workspace(workspace).exclude(type__startswith="key.")
        run()
        assert f"evt_{event.pk}" in {request.id for request in receiver.received}


@pytest.fixture
def full_disk() -> Any:
    """Let PostgreSQL refuse new events, as it does without room on its disk."""
    if connection.vendor != "postgresql":
        pytest.skip("needs the error codes of PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_events() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{DISK_FULL_SQLSTATE}'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON personas_event "
            "FOR EACH ROW EXECUTE FUNCTION refuse_events()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER IF EXISTS full_disk ON personas_event")
        cursor.execute("DROP FUNCTION IF EXISTS refuse_events() CASCADE")


def check_refused(workspace: Any, admin: Any) -> None:
    response = admin.post("memories", {"text": "Likes tea."})
    assert (response.status_code, response.json().get("code")) == (503, "storage_full")
    assert not Memory.objects.in_workspace(workspace).exists()
    assert not Event.objects.in_workspace(workspace).exclude(type__startswith="key.").exists()


def test_a_change_whose_event_has_no_room_on_the_disk_is_not_acknowledged(workspace, admin, full_disk):
    check_refused(workspace, admin)


@pytest.mark.planted
def test_a_change_that_is_kept_without_its_event_is_detected(workspace, admin, full_disk, monkeypatch):
    monkeypatch.setattr("personas.events.services.insert_events", lambda events: None)
    with pytest.raises(AssertionError):
        check_refused(workspace, admin)


# --- errors of the worker --------------------------------------------------------------------------------


def check_failed_attempt(workspace: Any, endpoint: WebhookEndpoint, *, error: str) -> None:
    """One failed attempt is recorded, with the usual delay and pause, and counts."""
    [attempt] = WebhookAttempt.objects.in_workspace(workspace).filter(delivery__endpoint=endpoint)
    assert (attempt.status, attempt.error, attempt.response) == (None, error, "")
    delivery = WebhookDelivery.objects.in_workspace(workspace).get(endpoint=endpoint)
    assert (delivery.attempt_count, delivery.status) == (1, DeliveryStatus.PENDING)
    assert delivery.due_at - attempt.at >= RETRY_DELAYS[0]
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.failing_since is not None) == (1, True)
    assert endpoint.held_until is not None
    assert endpoint.held_until - attempt.at >= timedelta(seconds=1)


def check_unusable_key(workspace: Any) -> None:
    """The private key of an endpoint is decrypted, but is none: an error before the request is sent."""
    with receiving() as receiver, receiving() as good:
        endpoint, _ = make_endpoint(workspace, receiver.url, "Broken")
        make_endpoint(workspace, good.url, "Good")
        endpoint.private_key = encrypt_secret("no key")
        endpoint.save(update_fields=["private_key"])
        move(workspace)
        with time_machine.travel(timezone.now(), tick=False):
            for _ in range(3):
                # A worker that records nothing would try again until it accepts no more turns.
                run(accept_seconds=3, accept_failing_seconds=3)
        assert (len(receiver.received), len(good.received)) == (0, 1)
    check_failed_attempt(workspace, endpoint, error=deliver.INTERNAL_ERROR)


def test_an_error_before_the_request_is_a_failed_attempt(workspace):
    check_unusable_key(workspace)


@contextmanager
def refused_responses() -> Iterator[None]:
    """Let the database refuse attempts that have the text of a response."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "CREATE FUNCTION refuse_attempts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "IF NEW.response <> '' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$"
            )
            cursor.execute(
                "CREATE TRIGGER refused BEFORE INSERT ON personas_webhookattempt "
                "FOR EACH ROW EXECUTE FUNCTION refuse_attempts()"
            )
        else:
            cursor.execute(
                "CREATE TRIGGER refused BEFORE INSERT ON personas_webhookattempt WHEN NEW.response <> '' "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("DROP FUNCTION refuse_attempts() CASCADE")
            else:
                cursor.execute("DROP TRIGGER refused")


def check_unstored_results(workspace: Any) -> None:
    with refused_responses(), receiving(Answer(200, body=b"tea")) as receiver, receiving() as good:
        endpoint, _ = make_endpoint(workspace, receiver.url, "Refused")
        make_endpoint(workspace, good.url, "Good")
        move(workspace)
        with time_machine.travel(timezone.now(), tick=False):
            for _ in range(3):
                run()
        assert (len(receiver.received), len(good.received)) == (1, 1)
    check_failed_attempt(workspace, endpoint, error=deliver.INTERNAL_ERROR)


def test_a_result_that_cannot_be_stored_is_a_failed_attempt(workspace):
    check_unstored_results(workspace)


def test_an_event_that_cannot_be_fanned_out_stops_no_other_workspace(workspace, elsewhere):
    with receiving() as receiver:
        make_endpoint(workspace, receiver.url, "Desk")
        make_endpoint(elsewhere, receiver.url, "Other")
        # A test event names its endpoint; this one does not.
        record_event(workspace, "webhook.test", {"endpoint_id": 1, "status": "enabled"})
        Event.objects.in_workspace(workspace).filter(type="webhook.test").update(data={})
        move(elsewhere)
        run()
        assert [request.event["workspace"] for request in receiver.received] == [elsewhere.slug]


@given(st.one_of(st.text(), st.from_regex(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")))
def test_no_retry_after_raises_or_delays_for_more_than_a_day(value):
    for text in (value, OVERFLOW_DATE, f"Mon, 01 {value}"):
        assert timedelta(0) <= parse_retry_after(text, timezone.now()) <= MAX_RETRY_AFTER


# --- planted faults ------------------------------------------------------------------------------------


def serve_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deliver, "MAX_THREADS", 1)


def hold_no_endpoint(patch: pytest.MonkeyPatch) -> None:
    def keep_on(turn: deliver.EndpointTurn, send: Callable[..., deliver.AttemptResult]) -> None:
        for delivery in turn.deliveries:
            turn.results.append(send(turn, delivery))

    patch.setattr(deliver.EndpointTurn, "run", keep_on)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "name"),
    [(serve_one_after_the_other, "hangs"), (hold_no_endpoint, "500"), (hold_no_endpoint, "429")],
)
def test_a_worker_that_lets_one_receiver_delay_others_is_detected(
    workspace, elsewhere, monkeypatch, plant, name
):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_failure(workspace, elsewhere, name)


def leave_errors_to_the_job(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deliver.EndpointTurn, "attempt", lambda turn, send, delivery: send(turn, delivery))
    patch.setattr(deliver, "store_failures", lambda endpoint, results: None)


@pytest.mark.planted
@pytest.mark.parametrize("check", [check_unusable_key, check_unstored_results])
def test_a_worker_that_records_no_attempt_after_an_error_is_detected(workspace, monkeypatch, check):
    leave_errors_to_the_job(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check(workspace)


@pytest.mark.planted
def test_a_worker_that_ignores_410_is_detected(workspace, elsewhere, monkeypatch):
    monkeypatch.setattr(deliver, "GONE_STATUS", 0)
    with pytest.raises(AssertionError):
        check_failure(workspace, elsewhere, "410")


@pytest.mark.planted
def test_a_fan_out_that_skips_events_is_detected(workspace, elsewhere, monkeypatch):
    real = list_events_after
    monkeypatch.setattr(fan_out, "list_events_after", lambda *of, **more: real(*of, **more)[1:])
    with pytest.raises(AssertionError):
        check_failure(workspace, elsewhere, "404")


def test_a_job_that_ends_soon_leaves_failing_endpoints_to_the_next(workspace):
    """Otherwise all endpoints of the worker would wait for a receiver that hangs."""
    with receiving(Answer(500)) as failing, receiving() as good:
        endpoint, _ = make_endpoint(workspace, failing.url, "Failing")
        make_endpoint(workspace, good.url, "Good")
        endpoint.failures = 1
        endpoint.save(update_fields=["failures"])
        move(workspace)
        run(accept_failing_seconds=0)
        assert (len(failing.received), len(good.received)) == (0, 1)
        run()
        assert (len(failing.received), len(good.received)) == (1, 1)
