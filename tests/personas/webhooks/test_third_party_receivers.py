"""Programs of others verify a delivery: standardwebhooks (PyPI, npm), svix and openssl."""

import base64
import hmac
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
import time_machine
from django.utils import timezone

from personas.actors import Actor
from personas.events.services import record_event
from personas.models import Workspace
from personas.webhooks import signatures
from personas.webhooks.deliver import DeliveryLoop
from personas.webhooks.selectors import get_endpoint_public_key
from personas.webhooks.services import create_endpoint, rotate_secret
from tests.personas.webhooks.receivers import Received, receiving
from tests.personas.webhooks.verifiers import (
    REJECTION,
    WebhookLibraries,
    install_libraries,
    verify_with_openssl,
)

pytestmark = [pytest.mark.hard, pytest.mark.django_db(transaction=True)]
CHANGE = {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}
OTHER_SECRET = "whsec_" + base64.b64encode(b"x" * 32).decode()


class Deliveries(NamedTuple):
    """A delivery from six minutes ago, one of now, and one during the rotation of the secret."""

    old: Received
    first: Received
    rotating: Received
    secret: str
    new_secret: str
    public_key: bytes
    other_public_key: bytes


@pytest.fixture(scope="module")
def libraries() -> WebhookLibraries:
    return install_libraries()


@pytest.fixture(autouse=True)
def local_receivers(settings: Any) -> None:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.0/8"]


def deliver(workspace: Workspace) -> Deliveries:
    by = Actor("alice")
    with receiving() as receiver, receiving() as other:
        with time_machine.travel(timezone.now() - timedelta(minutes=6)):
            endpoint, secret = create_endpoint(workspace, {"name": "Desk", "url": receiver.url}, by=by)
            send(workspace)
        send(workspace)
        _, new_secret = rotate_secret(endpoint, by=by)
        send(workspace)
        second, _ = create_endpoint(workspace, {"name": "Other", "url": other.url}, by=by)
    key, other_key = (
        base64.b64decode(get_endpoint_public_key(row).removeprefix("whpk_")) for row in (endpoint, second)
    )
    old, first, rotating = (
        request for request in receiver.received if request.event["type"] == "record.changed"
    )
    return Deliveries(old, first, rotating, secret, new_secret, key, other_key)


def send(workspace: Workspace) -> None:
    record_event(workspace, "record.changed", CHANGE)
    DeliveryLoop().run()


def check_results(name: str, results: dict[str, str], *, is_valid: bool) -> None:
    print(name, results)
    assert len(results) == 3
    for result in results.values():
        assert result == "valid" if is_valid else result.startswith(REJECTION)


def test_three_libraries_verify_a_delivery_and_reject_what_was_changed(workspace, libraries):
    sent = deliver(workspace)
    headers, body = sent.first.headers, sent.first.body.decode()
    later = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}
    other_id = {**headers, "webhook-id": headers["webhook-id"] + "0"}
    check_results("delivery", libraries.verify(headers, body, sent.secret), is_valid=True)
    rejected = {
        "changed byte": (headers, body.replace("edited", "edites"), sent.secret),
        "changed timestamp": (later, body, sent.secret),
        "changed id": (other_id, body, sent.secret),
        "wrong secret": (headers, body, OTHER_SECRET),
        "secret after rotation": (headers, body, sent.new_secret),
        "six minutes old": (sent.old.headers, sent.old.body.decode(), sent.secret),
    }
    for name, arguments in rejected.items():
        check_results(name, libraries.verify(*arguments), is_valid=False)


def test_three_libraries_accept_both_secrets_during_a_rotation(workspace, libraries):
    sent = deliver(workspace)
    for secret in (sent.secret, sent.new_secret):
        results = libraries.verify(sent.rotating.headers, sent.rotating.body.decode(), secret)
        check_results("rotation", results, is_valid=True)


@pytest.mark.parametrize("delivery", ["old", "first", "rotating"])
def test_openssl_verifies_the_ed25519_signature_with_the_published_key(workspace, tmp_path, delivery):
    sent = deliver(workspace)
    request: Received = getattr(sent, delivery)
    content = f"{request.id}.{request.headers['webhook-timestamp']}.".encode() + request.body
    signature = base64.b64decode(request.headers["webhook-signature"].split("v1a,")[1])
    assert verify_with_openssl(sent.public_key, signature, content, tmp_path)
    assert not verify_with_openssl(sent.public_key, signature, content + b" ", tmp_path)
    assert not verify_with_openssl(sent.other_public_key, signature, content, tmp_path)


def sign_with_secret_text(secret: str, content: bytes) -> bytes:
    return hmac.digest(secret.encode(), content, "sha256")


def sign_without_timestamp(secret: str, content: bytes) -> bytes:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    event_id, _, body = content.split(b".", 2)
    return hmac.digest(key, event_id + b"." + body, "sha256")


@pytest.mark.planted
@pytest.mark.parametrize("fault", [sign_with_secret_text, sign_without_timestamp])
def test_three_libraries_reject_the_deliveries_of_a_faulty_sender(workspace, libraries, monkeypatch, fault):
    monkeypatch.setattr(signatures, "sign_hmac", fault)
    sent = deliver(workspace)
    results = libraries.verify(sent.first.headers, sent.first.body.decode(), sent.secret)
    check_results("faulty sender", results, is_valid=False)
