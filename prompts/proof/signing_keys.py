"""Ed25519 keys as bytes that others keep, and the short name a key is known by."""

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
    """What was given as a key is none, or none of the kind used here."""


def generate_signing_key() -> PrivateKey:
    return PrivateKey.generate()


def dump_private_key(key: PrivateKey) -> bytes:
    """PEM (PKCS #8) of the private key, not encrypted: where it lies must be."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load_private_key(pem: bytes) -> PrivateKey:
    """The private key in a PEM; UnusableKey for anything else."""
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
    """The public key in a PEM; UnusableKey for anything else."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnusableKey("This is not the PEM of a public key.") from error
    if not isinstance(key, PublicKey):
        raise UnusableKey("This public key is not an Ed25519 key.")
    return key


def get_key_id(key: PublicKey) -> str:
    """The first 16 hex digits of the SHA-256 of the key's 32 bytes."""
    return sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]
