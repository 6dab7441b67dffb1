"""Load and dump Ed25519 signing keys, and compute their key id."""

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
        raise UnusableKey("This is not the PEM of a private key without a password.") from error
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
        raise UnusableKey("This is not the PEM of a public key.") from error
    if not isinstance(key, PublicKey):
        raise UnusableKey("This public key is not an Ed25519 key.")
    return key


def get_key_id(key: PublicKey) -> str:
    """Return the key id: the first 16 hex digits of the SHA-256 of the 32 raw bytes of the key."""
    return sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]
