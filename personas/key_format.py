"""What a bot's key looks like: kind, thirty random characters, six of checksum; only its digest is kept."""

import secrets
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from zlib import crc32

BASE62 = digits + ascii_uppercase + ascii_lowercase
KIND = "drm_bot_"
RANDOM, CHECKSUM = 30, 6
# Enough to recognise a key by, far too little to guess the rest from.
SHOWN = len(KIND) + 6


def new_secret() -> str:
    """A key nobody has had before; 178 bits, so a plain digest of it is safe to keep."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM))
    return f"{KIND}{body}{checksum(body)}"


def checksum(body: str) -> str:
    """CRC32 of the random part in base62, so that a mistyped key is told from a wrong one without a query."""
    left, said = crc32(body.encode()), ""
    for _ in range(CHECKSUM):
        left, digit = divmod(left, len(BASE62))
        said = BASE62[digit] + said
    return said


def well_formed(secret: str) -> bool:
    """Whether this can be a key at all."""
    body = secret[len(KIND) :]
    if not secret.startswith(KIND) or len(body) != RANDOM + CHECKSUM or not set(body) <= set(BASE62):
        return False
    return checksum(body[:RANDOM]) == body[RANDOM:]


def key_digest(secret: str) -> str:
    """What is stored of a key, and looked up."""
    return sha256(secret.encode()).hexdigest()


def shown_prefix(secret: str) -> str:
    return secret[:SHOWN]
