"""Encryption of secrets that are stored in the database, such as the seeds of second factors.

Fernet (AES-128-CBC with HMAC-SHA256). The keys are derived from DRAMATIS_SECRETS_KEYS, or from SECRET_KEY if
that is empty. The first key encrypts, all of them decrypt, so that keys can be rotated.
"""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# Marks an encrypted value. Seeds in clear are base32 or hexadecimal and contain no colon.
ENCRYPTED_PREFIX = "fernet:"
KEY_CONTEXT = b"dramatis secrets at rest"


class UnreadableSecret(ValueError):
    """A stored secret was encrypted with a key that is not configured."""


def derive_fernet_key(text: str) -> bytes:
    """Derive a Fernet key from a configured text with HKDF."""
    return base64.urlsafe_b64encode(
        HKDF(algorithm=SHA256(), length=32, salt=None, info=KEY_CONTEXT).derive(text.encode())
    )


def list_fernets() -> list[Fernet]:
    """Return the ciphers of all configured keys; the first one encrypts.

    SECRET_KEY and its fallbacks always decrypt, so that an installation can switch to DRAMATIS_SECRETS_KEYS.
    """
    texts = [*settings.DRAMATIS_SECRETS_KEYS, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [Fernet(derive_fernet_key(text)) for text in dict.fromkeys(texts)]


def is_encrypted(value: str) -> bool:
    return value.startswith(ENCRYPTED_PREFIX)


def is_current(value: str) -> bool:
    """Return whether a value is encrypted with the first key."""
    if not is_encrypted(value):
        return False
    try:
        list_fernets()[0].decrypt(value.removeprefix(ENCRYPTED_PREFIX))
    except InvalidToken:
        return False
    return True


def encrypt_secret(text: str) -> str:
    return ENCRYPTED_PREFIX + MultiFernet(list_fernets()).encrypt(text.encode()).decode()


def decrypt_secret(value: str) -> str:
    """Return the secret in clear. Raise UnreadableSecret if no configured key decrypts it.

    A value without the prefix is not encrypted and returned as it is. The doctor reports such rows.
    """
    if not is_encrypted(value):
        return value
    try:
        return MultiFernet(list_fernets()).decrypt(value.removeprefix(ENCRYPTED_PREFIX)).decode()
    except InvalidToken:
        raise UnreadableSecret("No configured key decrypts this value.") from None
