"""What a key looks like: kind, thirty random characters, six of checksum; only its digest is kept."""

import secrets
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from zlib import crc32

BASE62 = digits + ascii_uppercase + ascii_lowercase
# A bot's key belongs to the workspace; an admin key acts for the person who made it.
BOT, ADMIN = "bot", "admin"
KEY_PREFIXES = {BOT: "drm_bot_", ADMIN: "drm_admin_"}
RANDOM_LENGTH, CHECKSUM_LENGTH = 30, 6
# Enough to recognise a key by, far too little to guess the rest from.
VISIBLE_LENGTH = 6


def generate_key_secret(kind: str = BOT) -> str:
    """A key nobody has had before; 178 bits, so a plain digest of it is safe to keep."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH))
    return f"{KEY_PREFIXES[kind]}{body}{compute_checksum(body)}"


def compute_checksum(body: str) -> str:
    """CRC32 of the random part in base62, so that a mistyped key is told from a wrong one without a query."""
    left, said = crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        left, digit = divmod(left, len(BASE62))
        said = BASE62[digit] + said
    return said


def get_key_kind(secret: str) -> str:
    """The kind that a key begins with; empty for what does not begin like a key."""
    return next((kind for kind, beginning in KEY_PREFIXES.items() if secret.startswith(beginning)), "")


def is_well_formed_key(secret: str) -> bool:
    """Whether this can be a key at all."""
    kind = get_key_kind(secret)
    body = secret[len(KEY_PREFIXES[kind]) :] if kind else ""
    if len(body) != RANDOM_LENGTH + CHECKSUM_LENGTH or not set(body) <= set(BASE62):
        return False
    return compute_checksum(body[:RANDOM_LENGTH]) == body[RANDOM_LENGTH:]


def key_digest(secret: str) -> str:
    """What is stored of a key, and looked up."""
    return sha256(secret.encode()).hexdigest()


def get_key_prefix(secret: str) -> str:
    return secret[: len(KEY_PREFIXES[get_key_kind(secret)]) + VISIBLE_LENGTH]
