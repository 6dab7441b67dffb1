"""Second factors: encrypted seeds (django-allauth's MFA adapter), re-encryption after a key rotation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from personas.accounts.encryption import (
    UnreadableSecret,
    decrypt_secret,
    encrypt_secret,
    is_current,
    is_encrypted,
)

log = structlog.get_logger(__name__)

# Fields of Authenticator.data that hold a secret: the TOTP seed, the seed of recovery codes, and recovery
# codes migrated from django-allauth-2fa. Passkeys store a public key only.
SECRET_FIELDS = ("secret", "seed", "migrated_codes")


class UnreadableFactor(ValidationError):
    """The second factor was encrypted with a key that is not configured.

    Forms show the message. Templates show an empty value (`silent_variable_failure`).
    """

    silent_variable_failure = True


class EncryptingMFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth ships no types
    """Stores the seeds of second factors encrypted."""

    def encrypt(self, text: str) -> str:
        return encrypt_secret(text)

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return decrypt_secret(encrypted_text)
        except UnreadableSecret:
            log.error("second_factor_unreadable")  # noqa: TRY400  # the traceback says no more
            raise UnreadableFactor(
                _("This second factor no longer works. Use another one, or ask an operator to remove it.")
            ) from None


@dataclass
class SecretCounts:
    """Number of second factors by the state of their secrets."""

    current: int = 0
    outdated: int = 0
    in_clear: int = 0
    unreadable: int = 0


def list_secrets(data: dict[str, Any]) -> list[str]:
    """Return the stored secrets of one second factor, encrypted or not."""
    values = [data[name] for name in SECRET_FIELDS if data.get(name)]
    return [text for value in values for text in (value if isinstance(value, list) else [value])]


def transform_secrets(data: dict[str, Any], transform: Callable[[str], str]) -> dict[str, Any]:
    """Return a copy of the data of a second factor with all its secrets transformed."""
    changed = {
        name: [transform(text) for text in data[name]]
        if isinstance(data[name], list)
        else transform(data[name])
        for name in SECRET_FIELDS
        if data.get(name)
    }
    return {**data, **changed}


def count_factor_secrets() -> SecretCounts:
    counts = SecretCounts()
    for data in Authenticator.objects.values_list("data", flat=True).iterator():
        state = get_secret_state(list_secrets(data))
        setattr(counts, state, getattr(counts, state) + 1)
    return counts


def get_secret_state(secrets: list[str]) -> str:
    """Return the name of the field of SecretCounts that counts a factor with these secrets."""
    if not all(map(is_encrypted, secrets)):
        return "in_clear"
    if all(map(is_current, secrets)):
        return "current"
    try:
        for text in secrets:
            decrypt_secret(text)
    except UnreadableSecret:
        return "unreadable"
    return "outdated"


def reencrypt_factors() -> SecretCounts:
    """Encrypt the secrets of all second factors with the first key.

    Return how many were already current, how many were changed, and how many cannot be read; those stay.
    Each row is locked and written by itself, so that the command can run while people sign in.
    """
    counts = SecretCounts()
    for pk in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            factor = Authenticator.objects.select_for_update().filter(pk=pk).first()
            if factor is None:
                continue
            state = get_secret_state(list_secrets(factor.data))
            setattr(counts, state, getattr(counts, state) + 1)
            if state in {"outdated", "in_clear"}:
                factor.data = transform_secrets(
                    factor.data, lambda text: encrypt_secret(decrypt_secret(text))
                )
                factor.save(update_fields=["data"])
    return counts
