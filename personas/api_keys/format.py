"""What a key looks like: kind, thirty random characters, six of checksum; only its digest is kept."""

import secrets
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from zlib import crc32

BASE62 = digits + ascii_uppercase + ascii_lowercase
# A bot's key belongs to the workspace; an admin key acts for the person who made it.
BOT, ADMIN = "bot", "admin"
BEGINNINGS = {BOT: "drm_bot_", ADMIN: "drm_admin_"}
RANDOM, CHECKSUM = 30, 6
# Enough to recognise a key by, far too little to guess the rest from.
SHOWN = 6


def new_secret(kind: str = BOT) -> str:
    """A key nobody has had before; 178 bits, so a plain digest of it is safe to keep."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM))
    return f"{BEGINNINGS[kind]}{body}{checksum(body)}"


def checksum(body: str) -> str:
    """CRC32 of the random part in base62, so that a mistyped key is told from a wrong one without a query."""
    left, said = crc32(body.encode()), ""
    for _ in range(CHECKSUM):
        left, digit = divmod(left, len(BASE62))
        said = BASE62[digit] + said
    return said


def kind_of(secret: str) -> str:
    """The kind that a key begins with; empty for what does not begin like a key."""
    return next((kind for kind, beginning in BEGINNINGS.items() if secret.startswith(beginning)), "")


def well_formed(secret: str) -> bool:
    """Whether this can be a key at all."""
    kind = kind_of(secret)
    body = secret[len(BEGINNINGS[kind]) :] if kind else ""
    if len(body) != RANDOM + CHECKSUM or not set(body) <= set(BASE62):
        return False
    return checksum(body[:RANDOM]) == body[RANDOM:]


def key_digest(secret: str) -> str:
    """What is stored of a key, and looked up."""
    return sha256(secret.encode()).hexdigest()


def shown_prefix(secret: str) -> str:
    return secret[: len(BEGINNINGS[kind_of(secret)]) + SHOWN]
