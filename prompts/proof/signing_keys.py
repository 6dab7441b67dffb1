"""Load and dump Ed25519 signing keys, compute their key id, and parse lists of trusted keys."""

import re
from hashlib import sha256

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

PrivateKey = Ed25519PrivateKey
PublicKey = Ed25519PublicKey
PUBLIC_KEY_PATTERN = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)
KEY_ID_PATTERN = re.compile(r"[0-9a-f]{16}")


class UnusableKey(ValueError):
    """The data is not a key, or not an Ed25519 key."""


def generate_signing_key() -> PrivateKey:
    return PrivateKey.generate()


def dump_private_key(key: PrivateKey) -> bytes:
    """Return the private key as PEM (PKCS #8). The PEM is not encrypted: encrypt it before storing it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load_private_key(pem: bytes) -> PrivateKey:
    """Load an Ed25519 private key from unencrypted PEM. Raise UnusableKey for any other data."""
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey("This is not an unencrypted private key in PEM format.") from error
    if not isinstance(key, PrivateKey):
        raise UnusableKey("This private key is not an Ed25519 key.")
    return key


def dump_public_key(key: PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def load_public_key(pem: str) -> PublicKey:
    """Load an Ed25519 public key from PEM. Raise UnusableKey for any other data."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnusableKey("This is not a public key in PEM format.") from error
    if not isinstance(key, PublicKey):
        raise UnusableKey("This public key is not an Ed25519 key.")
    return key


def get_key_id(key: PublicKey) -> str:
    """Return the key id: the first 16 hex digits of the SHA-256 of the 32 raw bytes of the key."""
    return sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]


def parse_trusted_keys(text: str) -> dict[str, PublicKey | None]:
    """Parse key ids and public keys in PEM, separated by commas or white space, to a dict by key id.

    The value is None for a key of which only the id is given. Raise UnusableKey for any other text. A literal
    \\n is accepted in place of a line break.
    """
    text = text.replace("\\n", "\n")
    keys: dict[str, PublicKey | None] = {}
    for key_id in PUBLIC_KEY_PATTERN.sub(" ", text).replace(",", " ").split():
        if not KEY_ID_PATTERN.fullmatch(key_id):
            raise UnusableKey("A trusted key is a key ID (16 hex digits) or a public key in PEM format.")
        keys[key_id] = None
    for pem in PUBLIC_KEY_PATTERN.findall(text):
        key = load_public_key(pem)
        keys[get_key_id(key)] = key
    return keys
