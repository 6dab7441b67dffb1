"""Webhook endpoints by API and on pages: create, edit, rotate, test, deliveries, delete."""

import socket
from typing import Any

import pytest
from allauth.account.internal.flows import reauthentication

from personas.actors import Actor
from personas.models import AuditEvent, WebhookDelivery, WebhookEndpoint
from personas.webhooks.deliver import DeliveryLoop
from personas.webhooks.services import create_endpoint
from tests.factories import PASSWORD
from tests.personas.webhooks.receivers import Answer, receiving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def local_receivers(settings: Any) -> None:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.0/8"]


def test_an_endpoint_is_managed_by_api(workspace, admin):
    with receiving(Answer(500, body=b"out of tea")) as receiver:
        created = admin.post("webhooks", {"name": "Desk", "url": receiver.url, "types": ["label.moved"]})
        assert created.status_code == 201
        data = created.json()
        assert data["secret"].startswith("whsec_")
        assert data["public_key"].startswith("whpk_")
        path = f"webhooks/{data['id']}"
        shown = admin.get(path)
        assert "secret" not in shown.json()
        changed = admin.patch(path, {"name": "Front desk", "types": []}, shown["ETag"])
        assert (changed.status_code, changed.json()["name"]) == (200, "Front desk")
        assert admin.patch(path, {"name": "Late"}, shown["ETag"]).status_code == 412
        rotated = admin.post(f"{path}:rotateSecret", {"overlap_hours": 1}).json()
        assert rotated["secret"] not in (None, data["secret"])
        assert admin.post(f"{path}:test").status_code == 204
        DeliveryLoop().run()
        [delivery] = admin.get(f"{path}/deliveries").json()["items"]
        assert (delivery["type"], delivery["status"]) == ("webhook.test", "pending")
        assert [(row["status"], row["response"]) for row in delivery["attempts"]] == [(500, "out of tea")]
        assert admin.post(f"{path}/deliveries/{delivery['id']}:redeliver").status_code == 204
        DeliveryLoop().run()
        assert len(receiver.received) == 2
    disabled = admin.patch(path, {"is_enabled": False}, "*").json()
    assert (disabled["is_enabled"], disabled["status"]) == (False, "disabled")
    refused = admin.post(f"{path}:test")
    assert (refused.status_code, refused.json()["code"]) == (409, "endpoint_disabled")
    assert admin.delete(path, "*").status_code == 204
    assert admin.get(path).status_code == 404
    verbs = AuditEvent.objects.in_workspace(workspace).filter(kind="webhook").order_by("pk")
    expected = ["created", "edited", "rotated", "tested", "redelivered", "disabled", "deleted"]
    assert list(verbs.values_list("verb", flat=True)) == expected


def test_a_retried_creation_does_not_show_the_secret_again(admin):
    with receiving() as receiver:
        body = {"name": "Desk", "url": receiver.url}
        first = admin.post("webhooks", body, Idempotency_Key="one").json()
        second = admin.post("webhooks", body, Idempotency_Key="one").json()
    assert (first["id"], second["secret"]) == (second["id"], None)


def test_an_internal_url_is_refused_with_a_reason_that_names_no_address(admin, settings):
    settings.DRAMATIS_OUTGOING_ALLOWED = []
    for url in ("http://127.0.0.1/", "http://10.0.0.7/", "http://intranet.invalid/"):
        response = admin.post("webhooks", {"name": "Desk", "url": url})
        assert response.status_code == 422
        [error] = response.json()["errors"]
        assert error == {
            "detail": "This URL cannot be used: its host has no public address.",
            "pointer": "/url",
        }


def test_an_endpoint_is_managed_on_pages(workspace, as_alice, as_bob):
    base = f"/w/{workspace.slug}/webhooks/"
    assert as_bob.get(base).status_code == 403
    with receiving(Answer(body=b"")) as receiver:
        invalid = as_alice.post(f"{base}new/", {"name": "Desk", "url": "ftp://example.com"})
        assert (invalid.status_code, "must start with" in invalid.content.decode()) == (422, True)
        created = as_alice.post(
            f"{base}new/", {"name": "Desk", "url": receiver.url, "labels": ["production"]}
        )
        assert "whsec_" in created.content.decode()
        assert created["Cache-Control"] == "no-store"
        endpoint = WebhookEndpoint.objects.in_workspace(workspace).get()
        page = f"{base}{endpoint.pk}/"
        as_alice.post(f"{page}test/")
        DeliveryLoop().run()
        text = as_alice.get(page).content.decode()
        assert "webhook.test" in text
        assert "whsec_" not in text
        delivery = WebhookDelivery.objects.in_workspace(workspace).get()
        as_alice.post(f"{page}deliveries/{delivery.pk}/redeliver/")
        DeliveryLoop().run()
        assert len(receiver.received) == 2
        assert as_alice.post(f"{page}edit/", {"name": "Front", "url": receiver.url}).status_code == 302
    assert "whsec_" in as_alice.post(f"{page}rotate/").content.decode()
    as_alice.post(f"{page}toggle/")
    assert "Disabled" in as_alice.get(base).content.decode()
    as_alice.post(f"{page}delete/")
    assert not WebhookEndpoint.objects.in_workspace(workspace).exists()


def check_recent_login(workspace: Any, alice: Any, client: Any) -> None:
    """A changed URL sends the events elsewhere, so it needs what a new endpoint needs."""
    endpoint, _ = create_endpoint(workspace, {"name": "Desk", "url": "http://127.0.0.1/"}, by=Actor("alice"))
    alice.set_password(PASSWORD)
    alice.save()
    client.force_login(alice)
    path = f"/w/{workspace.slug}/webhooks/{endpoint.pk}/edit/"
    values = {"name": "Desk", "url": "http://127.0.0.1/elsewhere"}
    response = client.post(path, values)
    assert "/reauthenticate/" in response["Location"]
    endpoint.refresh_from_db()
    assert endpoint.url == "http://127.0.0.1/"
    # After the confirmation, the stored request is sent.
    confirmed = client.post(response["Location"], {"password": PASSWORD}, follow=True)
    assert confirmed.status_code == 200
    endpoint.refresh_from_db()
    assert endpoint.url == "http://127.0.0.1/elsewhere"
    [event] = AuditEvent.objects.in_workspace(workspace).filter(kind="webhook", verb="edited")
    before, after = event.before or {}, event.after or {}
    assert (before["url"], after["url"]) == ("http://127.0.0.1/", endpoint.url)


def test_an_edit_requires_a_recent_login_and_is_audited(workspace, alice, client):
    check_recent_login(workspace, alice, client)


@pytest.mark.planted
def test_an_edit_without_a_recent_login_is_detected(workspace, alice, client, monkeypatch):
    monkeypatch.setattr(reauthentication, "is_reauthentication_required", lambda *_, **__: False)
    with pytest.raises(AssertionError):
        check_recent_login(workspace, alice, client)


def test_saving_an_endpoint_asks_no_name_server(workspace, admin, as_alice, settings, monkeypatch):
    """A slow name server would hold a thread of the web server."""
    settings.DRAMATIS_OUTGOING_ALLOWED = []
    asked = []
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        if not options.get("flags", 0) & socket.AI_NUMERICHOST:
            asked.append(host)
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    created = admin.post("webhooks", {"name": "Desk", "url": "https://slow.example.com/"})
    assert created.status_code == 201
    path = f"webhooks/{created.json()['id']}"
    assert admin.patch(path, {"url": "https://slower.example.com/"}, "*").status_code == 200
    assert admin.post(f"{path}:test").status_code == 204
    base = f"/w/{workspace.slug}/webhooks/"
    as_alice.post(f"{base}new/", {"name": "Page", "url": "https://slow.example.com/"})
    as_alice.post(f"{base}{created.json()['id']}/edit/", {"name": "A", "url": "https://999.999.999.999/"})
    assert WebhookEndpoint.objects.in_workspace(workspace).count() == 2
    assert [host for host in asked if host not in ("127.0.0.1", "localhost")] == []
