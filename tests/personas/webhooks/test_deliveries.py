"""Webhooks: which events an endpoint gets, signatures, retries, and endpoints that fail."""

import base64
import hashlib
import hmac
import threading
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from core.outgoing.http_sender import HttpSender, OutgoingPolicy
from personas.actors import Actor
from personas.errors import InvalidInput
from personas.events.selectors import list_events_after
from personas.events.services import record_event
from personas.models import (
    AuditEvent,
    DeliveryStatus,
    EndpointStatus,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from personas.webhooks import deliver
from personas.webhooks.deliver import DeliveryLoop
from personas.webhooks.retries import MAX_ATTEMPTS, RETRY_DELAYS, get_hold, parse_retry_after
from personas.webhooks.selectors import get_endpoint_public_key
from personas.webhooks.services import (
    create_endpoint,
    edit_endpoint,
    redeliver,
    rotate_secret,
    send_test_event,
    set_endpoint_status,
)
from personas.webhooks.stored_secrets import count_endpoint_secrets
from tests.factories import make_agent, make_channel
from tests.personas.webhooks.receivers import Answer, Received, receiving
from tests.personas.webhooks.verifiers import verify_with_openssl

pytestmark = pytest.mark.django_db(transaction=True)

MOVE = {"number": 2, "previous_number": 1, "version_id": 9, "reason": "moved"}


@pytest.fixture(autouse=True)
def local_receivers(settings: Any) -> None:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.0/8"]


def make_endpoint(
    workspace: Workspace, url: str, name: str = "Desk", **values: Any
) -> tuple[WebhookEndpoint, str]:
    return create_endpoint(workspace, {"name": name, "url": url, **values}, by=Actor("alice"))


def move(workspace: Workspace, agent: str = "pilot", channel: str = "web", label: str = "production") -> None:
    record_event(workspace, "label.moved", {"agent": agent, "channel": channel, "label": label, **MOVE})


def run(**options: Any) -> None:
    DeliveryLoop(**options).run()


def verify_hmac(request: Received, secret: str) -> bool:
    content = f"{request.id}.{request.headers['webhook-timestamp']}.".encode() + request.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = f"v1,{base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()}"
    return expected in request.headers["webhook-signature"].split(" ")


def test_an_endpoint_gets_the_events_after_its_creation(workspace):
    move(workspace)
    with receiving() as receiver:
        make_endpoint(workspace, receiver.url)
        move(workspace, label="canary")
        run()
        run()
    [request] = receiver.received
    [*_, event] = list_events_after(workspace, 0)
    assert request.event == {
        "id": f"evt_{event.pk}",
        "sequence": event.sequence,
        "type": "label.moved",
        "timestamp": event.at.isoformat().replace("+00:00", "Z"),
        "workspace": workspace.slug,
        "data": {"agent": "pilot", "channel": "web", "label": "canary", **MOVE},
    }
    assert request.id == f"evt_{event.pk}"
    delivery = WebhookDelivery.objects.in_workspace(workspace).get()
    assert (delivery.status, delivery.attempt_count) == (DeliveryStatus.DELIVERED, 1)


def test_filters_choose_events_by_type_agent_channel_and_label(workspace):
    make_agent(workspace, "pilot")
    make_channel(workspace, "deck")
    filters: list[dict[str, list[str]]] = [
        {},
        {"types": ["label.moved"]},
        {"types": ["version.created"]},
        {"agents": ["pilot"]},
        {"channels": ["deck"]},
        {"labels": ["production"]},
        {"agents": ["pilot"], "labels": ["canary"]},
    ]
    with receiving() as receiver:
        endpoints = [
            make_endpoint(workspace, f"{receiver.url}/{number}", f"Desk {number}", **values)[0]
            for number, values in enumerate(filters)
        ]
        move(workspace, "pilot", "deck", "production")
        move(workspace, "mate", "web", "canary")
        record_event(
            workspace, "record.changed", {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}
        )
        run()
    counts = [
        WebhookDelivery.objects.in_workspace(workspace).filter(endpoint=row).count() for row in endpoints
    ]
    assert counts == [3, 2, 0, 1, 1, 1, 0]
    assert len(receiver.received) == 8


def test_both_signatures_are_valid_and_a_changed_byte_is_not(workspace, tmp_path):
    with receiving() as receiver:
        endpoint, secret = make_endpoint(workspace, receiver.url)
        move(workspace)
        run()
    [request] = receiver.received
    assert verify_hmac(request, secret)
    assert not verify_hmac(Received(request.headers, request.body + b" ", 0), secret)
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    content = f"{request.id}.{request.headers['webhook-timestamp']}.".encode() + request.body
    signature = request.headers["webhook-signature"].split("v1a,")[1]
    public_key = base64.b64decode(get_endpoint_public_key(endpoint).removeprefix("whpk_"))
    assert verify_with_openssl(public_key, base64.b64decode(signature), content, tmp_path)
    assert not verify_with_openssl(public_key, base64.b64decode(signature), content + b" ", tmp_path)


def test_both_secrets_are_valid_during_a_rotation_and_only_the_new_one_after_it(workspace):
    with receiving() as receiver:
        endpoint, old = make_endpoint(workspace, receiver.url)
        _, new = rotate_secret(endpoint, by=Actor("alice"))
        move(workspace)
        run()
        with time_machine.travel(timezone.now() + timedelta(hours=25)):
            move(workspace)
            run()
    first, second = receiver.received
    assert (verify_hmac(first, old), verify_hmac(first, new)) == (True, True)
    assert (verify_hmac(second, old), verify_hmac(second, new)) == (False, True)


def test_secrets_are_encrypted_in_the_database_and_absent_from_the_audit_log(workspace):
    with receiving() as receiver:
        endpoint, secret = make_endpoint(workspace, receiver.url)
        _, new = rotate_secret(endpoint, by=Actor("alice"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM personas_webhookendpoint")
        stored = str(cursor.fetchall())
    audited = str(list(AuditEvent.objects.in_workspace(workspace).values()))
    for text in (secret, new, secret.removeprefix("whsec_"), new.removeprefix("whsec_")):
        assert text not in stored
        assert text not in audited


def test_a_failed_delivery_is_tried_again_on_schedule_with_the_same_id(workspace):
    answers = [500, 302, 404, 204]
    with receiving(lambda request: Answer(answers[len(receiver.received) - 1], body=b"no")) as receiver:
        make_endpoint(workspace, receiver.url)
        move(workspace)
        now = timezone.now()
        with time_machine.travel(now, tick=False):
            run()
        for delay in RETRY_DELAYS[:3]:
            with time_machine.travel(now + delay * 0.9, tick=False):
                run()
            count = len(receiver.received)
            now += delay * 1.21 + timedelta(seconds=1)
            with time_machine.travel(now, tick=False):
                run()
            assert len(receiver.received) == count + 1
    assert len({request.id for request in receiver.received}) == 1
    assert len({request.headers["webhook-timestamp"] for request in receiver.received}) == 4
    delivery = WebhookDelivery.objects.in_workspace(workspace).get()
    assert (delivery.status, delivery.attempt_count) == (DeliveryStatus.DELIVERED, 4)
    attempts = WebhookAttempt.objects.in_workspace(workspace).order_by("pk")
    assert [(row.status, row.response) for row in attempts] == [
        (500, "no"),
        (302, "no"),
        (404, "no"),
        (204, ""),
    ]
    endpoint = WebhookEndpoint.objects.in_workspace(workspace).get()
    assert (endpoint.failures, endpoint.held_until) == (0, None)


def test_retry_after_is_respected(workspace):
    with receiving(Answer(429, {"Retry-After": "7200"})) as receiver:
        make_endpoint(workspace, receiver.url)
        move(workspace)
        run()
        now = timezone.now()
        with time_machine.travel(now + timedelta(minutes=110)):
            run()
        assert len(receiver.received) == 1
        with time_machine.travel(now + timedelta(minutes=125)):
            run()
        assert len(receiver.received) == 2


def test_the_values_of_retry_after():
    now = timezone.now().replace(microsecond=0)
    later = (now + timedelta(minutes=2)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert parse_retry_after(later, now) == timedelta(minutes=2)
    assert parse_retry_after("120", now) == timedelta(minutes=2)
    assert parse_retry_after("99999999", now) == timedelta(hours=24)
    for text in ("", "soon", "-5", "1.5", "９", "9" * 400):
        assert parse_retry_after(text, now) == timedelta(0)


def test_an_overloaded_endpoint_is_left_alone_for_longer():
    zero = timedelta(0)
    assert get_hold(1, 500, zero) < timedelta(seconds=2) < get_hold(1, 429, zero)
    assert timedelta(minutes=5) <= get_hold(1_000, 500, zero) <= timedelta(minutes=6)


def test_the_status_410_disables_an_endpoint(workspace):
    with receiving(Answer(410)) as receiver, receiving() as other:
        endpoint, _ = make_endpoint(workspace, receiver.url)
        make_endpoint(workspace, other.url, "Other")
        move(workspace)
        run()
        move(workspace)
        run()
    endpoint.refresh_from_db()
    assert (endpoint.status, len(receiver.received)) == (EndpointStatus.GONE, 1)
    assert [request.event["type"] for request in other.received] == [
        "label.moved",
        "webhook.disabled",
        "label.moved",
    ]
    assert AuditEvent.objects.in_workspace(workspace).filter(kind="webhook", verb="disabled").exists()


def test_an_endpoint_that_fails_for_days_is_disabled(workspace):
    with receiving(Answer(500)) as receiver:
        endpoint, _ = make_endpoint(workspace, receiver.url)
        move(workspace)
        now = timezone.now()
        for number in range(MAX_ATTEMPTS):
            with time_machine.travel(now + timedelta(days=2 * number)):
                run()
    endpoint.refresh_from_db()
    assert (endpoint.status, len(receiver.received)) == (EndpointStatus.FAILING, MAX_ATTEMPTS)
    assert (
        WebhookDelivery.objects.in_workspace(workspace).get(event__type="label.moved").status
        == DeliveryStatus.FAILED
    )


def test_a_disabled_endpoint_gets_the_events_after_it_is_enabled(workspace):
    by = Actor("alice")
    with receiving() as receiver:
        endpoint, _ = make_endpoint(workspace, receiver.url)
        set_endpoint_status(endpoint, EndpointStatus.DISABLED, by=by)
        move(workspace, label="missed")
        run()
        set_endpoint_status(endpoint, EndpointStatus.ENABLED, by=by)
        move(workspace, label="new")
        run()
    assert [request.event["data"]["label"] for request in receiver.received] == ["new"]


def test_a_test_event_goes_to_its_endpoint_only(workspace):
    with receiving() as receiver, receiving() as other:
        endpoint, _ = make_endpoint(workspace, receiver.url, types=["version.created"])
        make_endpoint(workspace, other.url, "Other")
        send_test_event(endpoint, by=Actor("alice"))
        run()
    assert [request.event["type"] for request in receiver.received] == ["webhook.test"]
    assert other.received == []


def test_a_delivery_can_be_sent_again(workspace):
    with receiving() as receiver:
        make_endpoint(workspace, receiver.url)
        move(workspace)
        run()
        redeliver(
            WebhookDelivery.objects.in_workspace(workspace).select_related("endpoint").get(),
            by=Actor("alice"),
        )
        run()
    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)


def test_a_receiver_that_hangs_does_not_delay_others(workspace, elsewhere):
    with receiving(Answer(wait=30)) as slow, receiving() as fast:
        make_endpoint(workspace, slow.url, "Slow")
        make_endpoint(workspace, fast.url, "Fast")
        make_endpoint(elsewhere, fast.url, "Fast")
        for _ in range(3):
            move(workspace)
            move(elsewhere)
        began = time.monotonic()
        run(sender=HttpSender(OutgoingPolicy.from_settings(), total_seconds=6))
    assert len(fast.received) == 6
    assert max(request.at for request in fast.received) - began < 6
    # It was left alone after the first timeout.
    assert len(slow.received) <= 2
    errors = set(
        WebhookAttempt.objects.in_workspace(workspace).exclude(error="").values_list("error", flat=True)
    )
    assert errors == {"No complete response within 6 seconds."}


def test_one_workspace_has_few_threads_at_a_time(workspace, elsewhere, monkeypatch):
    monkeypatch.setattr(deliver, "MAX_THREADS", 5)
    with receiving(Answer(wait=3)) as slow, receiving() as fast:
        for number in range(6):
            make_endpoint(workspace, slow.url, f"Slow {number}")
        make_endpoint(elsewhere, fast.url)
        move(workspace)
        move(elsewhere)
        began = time.monotonic()
        run()
    assert len(slow.received) == 6
    assert fast.received[0].at - began < 3


def test_two_workers_send_an_event_once(workspace):
    with receiving(Answer(wait=0.02)) as receiver:
        for number in range(3):
            make_endpoint(workspace, receiver.url, f"Desk {number}")
        for _ in range(20):
            move(workspace)

        def work() -> None:
            run()
            connection.close()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run()
    assert len(receiver.received) == 60


def test_a_worker_that_died_with_a_lease_loses_nothing(workspace):
    with receiving() as receiver:
        make_endpoint(workspace, receiver.url)
        move(workspace)
        deliver.fan_out_all()
        assert deliver.lease_endpoint(WebhookEndpoint.objects.in_workspace(workspace).get())
        run()
        assert receiver.received == []
        with time_machine.travel(timezone.now() + deliver.LEASE + timedelta(seconds=1)):
            run()
    assert len(receiver.received) == 1


def test_an_internal_url_is_refused_when_it_is_saved_and_when_it_is_sent(workspace, settings):
    with receiving() as receiver:
        endpoint, _ = make_endpoint(workspace, receiver.url)
        settings.DRAMATIS_OUTGOING_ALLOWED = []
        for url in (receiver.url, "http://localhost/", "http://169.254.169.254/latest", "ftp://example.com"):
            with pytest.raises(InvalidInput):
                make_endpoint(workspace, url, "Other")
            with pytest.raises(InvalidInput):
                edit_endpoint(endpoint, {"url": url}, by=Actor("alice"))
        move(workspace)
        run()
        assert receiver.received == []
    [attempt] = WebhookAttempt.objects.in_workspace(workspace)
    assert attempt.error == "This URL cannot be used: its host has no public address."


def test_filters_must_name_what_exists(workspace, elsewhere):
    make_agent(elsewhere, "stranger")
    for name, value in (("types", "label.eaten"), ("agents", "stranger"), ("channels", "nowhere")):
        with receiving() as receiver, pytest.raises(InvalidInput):
            make_endpoint(workspace, receiver.url, "Desk", **{name: [value]})


def test_secrets_are_encrypted_again_after_a_key_rotation(workspace, settings):
    with receiving() as receiver:
        endpoint, secret = make_endpoint(workspace, receiver.url)
        rotate_secret(endpoint, by=Actor("alice"))
        settings.DRAMATIS_SECRETS_KEYS = ["a new key of at least thirty-two characters"]
        assert count_endpoint_secrets().outdated == 1
        call_command("reencrypt_secrets", stdout=StringIO())
        assert count_endpoint_secrets().current == 1
        settings.SECRET_KEY = "another key of at least thirty-two characters"
        move(workspace)
        run()
        assert verify_hmac(receiver.received[0], secret)
        settings.DRAMATIS_SECRETS_KEYS = []
        move(workspace)
        run()
    assert (count_endpoint_secrets().unreadable, len(receiver.received)) == (1, 1)
    attempt = WebhookAttempt.objects.in_workspace(workspace).latest("pk")
    assert attempt.error == "The secret cannot be decrypted. Create the endpoint again."
