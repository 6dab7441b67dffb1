"""Stored secrets of webhook endpoints: count them by state, and encrypt them after a key rotation."""

from django.db import transaction

from personas.accounts.encryption import decrypt_secret, encrypt_secret
from personas.accounts.second_factors import SecretCounts, get_secret_state
from personas.models import WebhookEndpoint

SECRET_COLUMNS = ("secret", "previous_secret", "private_key")


def list_stored_secrets(endpoint: WebhookEndpoint) -> list[str]:
    return [text for name in SECRET_COLUMNS if (text := getattr(endpoint, name))]


def count_endpoint_secrets() -> SecretCounts:
    counts = SecretCounts()
    for endpoint in WebhookEndpoint.unscoped.order_by("pk").iterator():
        state = get_secret_state(list_stored_secrets(endpoint))
        setattr(counts, state, getattr(counts, state) + 1)
    return counts


def reencrypt_endpoints() -> SecretCounts:
    """Encrypt the secrets of all endpoints with the first key, one row at a time.

    Return how many endpoints were already current, how many were changed, and how many cannot be read.
    """
    counts = SecretCounts()
    for workspace_id, pk in list(WebhookEndpoint.unscoped.order_by("pk").values_list("workspace_id", "pk")):
        with transaction.atomic():
            rows = WebhookEndpoint.objects.in_workspace(workspace_id).select_for_update(of=("self",))
            endpoint = rows.filter(pk=pk).first()
            if endpoint is None:
                continue
            state = get_secret_state(list_stored_secrets(endpoint))
            setattr(counts, state, getattr(counts, state) + 1)
            if state in {"outdated", "in_clear"}:
                for name in SECRET_COLUMNS:
                    if text := getattr(endpoint, name):
                        setattr(endpoint, name, encrypt_secret(decrypt_secret(text)))
                endpoint.save(update_fields=SECRET_COLUMNS)
    return counts
