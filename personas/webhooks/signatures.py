"""Signatures of Standard Webhooks 1.0: v1 (HMAC-SHA256 with a shared secret) and v1a (Ed25519)."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SECRET_PREFIX, PRIVATE_PREFIX, PUBLIC_PREFIX = "whsec_", "whsk_", "whpk_"
SECRET_BYTES = 32


def generate_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def generate_private_key() -> str:
    return PRIVATE_PREFIX + base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()


def get_public_key(private_key: str) -> str:
    key = load_private_key(private_key).public_key()
    return PUBLIC_PREFIX + base64.b64encode(key.public_bytes_raw()).decode()


def load_private_key(text: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(base64.b64decode(text.removeprefix(PRIVATE_PREFIX)))


def build_signature_headers(
    event_id: str, timestamp: int, body: bytes, *, secret_texts: Sequence[str], private_key: Ed25519PrivateKey
) -> dict[str, str]:
    """Return the three headers of a delivery. Each secret and the private key sign it.

    A receiver accepts the delivery if one signature is valid, and skips versions that it does not know.
    """
    content = f"{event_id}.{timestamp}.".encode() + body
    signatures = [f"v1,{base64.b64encode(sign_hmac(text, content)).decode()}" for text in secret_texts]
    signature = private_key.sign(content)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join([*signatures, f"v1a,{base64.b64encode(signature).decode()}"]),
    }


def sign_hmac(secret: str, content: bytes) -> bytes:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return hmac.new(key, content, hashlib.sha256).digest()
