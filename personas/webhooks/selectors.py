"""Queries for webhook endpoints and their deliveries."""

from datetime import datetime

from django.db.models import QuerySet

from core.db.batch_delete import delete_in_batches
from personas.accounts.encryption import UnreadableSecret, decrypt_secret
from personas.models import DeliveryStatus, WebhookDelivery, WebhookEndpoint, Workspace
from personas.webhooks.signatures import get_public_key


def list_endpoints(workspace: Workspace) -> QuerySet[WebhookEndpoint]:
    return WebhookEndpoint.objects.in_workspace(workspace)


def list_deliveries(endpoint: WebhookEndpoint) -> QuerySet[WebhookDelivery]:
    """Return the deliveries of an endpoint with their events and attempts, newest first."""
    rows = WebhookDelivery.objects.in_workspace(endpoint.workspace_id).filter(endpoint=endpoint)
    return rows.select_related("event").prefetch_related("attempts").order_by("-pk")


def get_endpoint_public_key(endpoint: WebhookEndpoint) -> str:
    """Return the public key of the signature v1a; an empty text if the private key cannot be decrypted."""
    try:
        return get_public_key(decrypt_secret(endpoint.private_key))
    except UnreadableSecret:
        return ""


def delete_deliveries_before(cutoff: datetime) -> int:
    """Delete deliveries that ended before the cutoff, in all workspaces."""
    rows = WebhookDelivery.unscoped.exclude(status=DeliveryStatus.PENDING)
    return delete_in_batches(rows.filter(finished_at__lt=cutoff))
