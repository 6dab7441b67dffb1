"""Salted digests: a digest from which nobody can guess a short text once its salt is deleted.

A stored digest is SHA-256 over a random salt and the SHA-256 of the data. The salt is stored beside the data
and erased with it. An empty salt stands for the plain SHA-256: what cannot be erased has no salt.
"""

import secrets
from collections.abc import Iterable
from hashlib import sha256

SALT_BYTES = 16
DIGEST_PREFIX, SALTS_PREFIX = "dramatis:salted:v1", "dramatis:salts:v1"


def generate_salt() -> str:
    return secrets.token_hex(SALT_BYTES)


def salt_digest(digest: str, salt: str) -> str:
    """Return the salted digest of data whose plain SHA-256 is `digest`."""
    if not salt:
        return digest
    return sha256(f"{DIGEST_PREFIX}\n{salt}\n{digest}".encode()).hexdigest()


def combine_salts(salts: Iterable[str]) -> str:
    """Return one salt for a text that has several salted parts. It is unknown if one of the salts is.

    Without any salt, it is empty.
    """
    listed = list(salts)
    if not any(listed):
        return ""
    return sha256("\n".join([SALTS_PREFIX, *listed]).encode()).hexdigest()
