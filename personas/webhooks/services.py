"""Create, edit, rotate and delete webhook endpoints; send test events and deliver again."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.outgoing.http_sender import ForbiddenUrl, HttpSender, OutgoingPolicy
from personas.accounts.encryption import decrypt_secret, encrypt_secret
from personas.actors import SYSTEM_ACTOR, Actor
from personas.audit.services import write_audit_event
from personas.errors import DomainError, InvalidInput
from personas.events.services import lock_event_counter, number_events, record_event
from personas.events.types import EVENT_TYPES
from personas.models import (
    Agent,
    Channel,
    DeliveryStatus,
    EndpointStatus,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
    Workspace,
)
from personas.records.services import convert_save_errors
from personas.tenancy.lost_nodes import lock_workspace
from personas.webhooks.signatures import generate_private_key, generate_secret

MAX_ENDPOINTS = 20
DEFAULT_OVERLAP, MAX_OVERLAP_HOURS = timedelta(hours=24), 168
EDITABLE_FIELDS = ("name", "url", "types", "agents", "channels", "labels")
TEST_EVENT = "webhook.test"


class EndpointLimit(DomainError):
    """The workspace has as many endpoints as it may have."""

    code = "limit_reached"


class EndpointDisabled(DomainError):
    """The endpoint is disabled, so nothing is sent to it."""

    code = "endpoint_disabled"


@transaction.atomic
def create_endpoint(
    workspace: Workspace, values: dict[str, Any], *, by: Actor
) -> tuple[WebhookEndpoint, str]:
    """Create an endpoint and return it with its secret. It gets the events from now on."""
    lock_workspace(workspace.pk)
    if WebhookEndpoint.objects.in_workspace(workspace).count() >= MAX_ENDPOINTS:
        raise EndpointLimit(
            _("A workspace can have at most %(count)s webhook endpoints. Delete one first.")
            % {"count": MAX_ENDPOINTS}
        )
    secret = generate_secret()
    endpoint = WebhookEndpoint(
        workspace=workspace,
        secret=encrypt_secret(secret),
        private_key=encrypt_secret(generate_private_key()),
        created_label=by.label[:254],
    )
    save_values(endpoint, values)
    skip_old_events(workspace.pk)
    audit_endpoint(endpoint, "created", by=by, after=endpoint.snapshot())
    return endpoint, secret


@transaction.atomic
def edit_endpoint(endpoint: WebhookEndpoint, values: dict[str, Any], *, by: Actor) -> WebhookEndpoint:
    """Change the given values of an endpoint."""
    endpoint = lock_endpoint(endpoint)
    before = endpoint.snapshot()
    save_values(endpoint, values)
    if endpoint.snapshot() != before:
        endpoint.revision += 1
        endpoint.save(update_fields=["revision"])
        audit_endpoint(endpoint, "edited", by=by, before=before, after=endpoint.snapshot())
    return endpoint


@transaction.atomic
def set_endpoint_status(endpoint: WebhookEndpoint, status: EndpointStatus, *, by: Actor) -> WebhookEndpoint:
    """Enable or disable an endpoint. An enabled one gets the events from now on, and what is pending."""
    endpoint = lock_endpoint(endpoint)
    if endpoint.status == status:
        return endpoint
    before = endpoint.snapshot()
    if status == EndpointStatus.ENABLED:
        endpoint.active_since, endpoint.failures = timezone.now(), 0
        endpoint.held_until = endpoint.failing_since = None
        skip_old_events(endpoint.workspace_id)
    endpoint.status, endpoint.revision = status, endpoint.revision + 1
    endpoint.save()
    verb = "enabled" if status == EndpointStatus.ENABLED else "disabled"
    audit_endpoint(endpoint, verb, by=by, before=before, after=endpoint.snapshot())
    if by == SYSTEM_ACTOR:
        data = {"endpoint_id": endpoint.pk, "status": str(status)}
        record_event(endpoint.workspace_id, "webhook.disabled", data)
    return endpoint


@transaction.atomic
def rotate_secret(
    endpoint: WebhookEndpoint, *, by: Actor, overlap: timedelta = DEFAULT_OVERLAP
) -> tuple[WebhookEndpoint, str]:
    """Replace the secret. The old one signs too for the time `overlap`."""
    endpoint = lock_endpoint(endpoint)
    secret = generate_secret()
    endpoint.previous_secret = endpoint.secret
    endpoint.previous_ends_at = timezone.now() + overlap
    endpoint.secret, endpoint.revision = encrypt_secret(secret), endpoint.revision + 1
    endpoint.save(update_fields=["secret", "previous_secret", "previous_ends_at", "revision"])
    after = {"previous_ends_at": endpoint.previous_ends_at.isoformat()}
    audit_endpoint(endpoint, "rotated", by=by, after=after)
    return endpoint, secret


@transaction.atomic
def delete_endpoint(endpoint: WebhookEndpoint, *, by: Actor) -> None:
    """Delete an endpoint with its deliveries."""
    endpoint = lock_endpoint(endpoint)
    audit_endpoint(endpoint, "deleted", by=by, before=endpoint.snapshot())
    endpoint.delete()


@transaction.atomic
def send_test_event(endpoint: WebhookEndpoint, *, by: Actor) -> None:
    """Record an event that only this endpoint gets."""
    endpoint = lock_endpoint(endpoint)
    require_enabled(endpoint)
    WebhookEndpoint.objects.in_workspace(endpoint.workspace_id).filter(pk=endpoint.pk).update(held_until=None)
    data = {"endpoint_id": endpoint.pk, "status": str(endpoint.status)}
    record_event(endpoint.workspace_id, TEST_EVENT, data)
    audit_endpoint(endpoint, "tested", by=by)


@transaction.atomic
def redeliver(delivery: WebhookDelivery, *, by: Actor) -> WebhookDelivery:
    """Send an event to its endpoint again, with the same id."""
    endpoint = lock_endpoint(delivery.endpoint)
    require_enabled(endpoint)
    rows = WebhookDelivery.objects.in_workspace(delivery.workspace_id)
    delivery = rows.select_for_update(of=("self",)).get(pk=delivery.pk)
    delivery.status, delivery.due_at = DeliveryStatus.PENDING, timezone.now()
    delivery.attempt_count, delivery.finished_at = 0, None
    delivery.save(update_fields=["status", "due_at", "attempt_count", "finished_at"])
    endpoint.held_until = None
    endpoint.save(update_fields=["held_until"])
    audit_endpoint(endpoint, "redelivered", by=by, after={"event": delivery.event_id})
    return delivery


def list_valid_secrets(endpoint: WebhookEndpoint) -> list[str]:
    """Return the secrets that sign now: the current one, and during a rotation the previous one."""
    values = [endpoint.secret]
    if endpoint.previous_ends_at and endpoint.previous_ends_at > timezone.now():
        values.append(endpoint.previous_secret)
    return [decrypt_secret(value) for value in values]


def save_values(endpoint: WebhookEndpoint, values: dict[str, Any]) -> None:
    for name in EDITABLE_FIELDS:
        if name in values:
            setattr(endpoint, name, values[name])
    if "url" in values:
        validate_url(values["url"])
    validate_filters(endpoint, values)
    with convert_save_errors():
        endpoint.full_clean()
        endpoint.save()


def validate_url(url: str) -> None:
    """Raise InvalidInput if the URL must not be requested. Workers resolve its host at each delivery."""
    try:
        HttpSender(OutgoingPolicy.from_settings()).check_url(url)
    except ForbiddenUrl as error:
        raise InvalidInput.on("url", str(error)) from None


def validate_filters(endpoint: WebhookEndpoint, values: dict[str, Any]) -> None:
    """Raise InvalidInput if a new filter refers to something that does not exist."""
    known: dict[str, Iterable[str]] = {"types": EVENT_TYPES}
    for name, model in (("agents", Agent), ("channels", Channel)):
        rows = model.objects.in_workspace(endpoint.workspace_id).filter(slug__in=values.get(name, []))
        known[name] = set(rows.values_list("slug", flat=True)) if values.get(name) else ()
    for name, existing in known.items():
        unknown = [value for value in values.get(name, []) if value not in existing]
        if unknown:
            raise InvalidInput.on(name, _("“%(value)s” does not exist.") % {"value": unknown[0]})


def skip_old_events(workspace_id: int) -> None:
    """Begin with the next event, unless other endpoints of the workspace have events to come."""
    enabled = WebhookEndpoint.objects.in_workspace(workspace_id).filter(status=EndpointStatus.ENABLED)
    if enabled.count() > 1:
        return
    number_events(workspace_id)
    last = lock_event_counter(workspace_id).last
    rows = WebhookQueue.objects.in_workspace(workspace_id)
    rows.bulk_create([WebhookQueue(workspace_id=workspace_id)], ignore_conflicts=True)
    rows.update(position=last)


def lock_endpoint(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    rows = WebhookEndpoint.objects.in_workspace(endpoint.workspace_id)
    return rows.select_for_update(of=("self",), no_key=True).get(pk=endpoint.pk)


def require_enabled(endpoint: WebhookEndpoint) -> None:
    if not endpoint.is_enabled:
        raise EndpointDisabled(_("“%(name)s” is disabled. Enable it first.") % {"name": endpoint})


def audit_endpoint(
    endpoint: WebhookEndpoint,
    verb: str,
    *,
    by: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    write_audit_event(
        endpoint.workspace_id, verb, "webhook", endpoint.pk, endpoint.name, by=by, before=before, after=after
    )
