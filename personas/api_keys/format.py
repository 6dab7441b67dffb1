"""Format of API keys: a prefix for the kind of key, 30 random characters and a checksum of 6 characters.

Only the SHA-256 digest of a key is stored.
"""

import secrets
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from zlib import crc32

BASE62 = digits + ascii_uppercase + ascii_lowercase
# Kinds of keys. A bot key belongs to the workspace; an admin key acts for the user who created it.
BOT, ADMIN = "bot", "admin"
KEY_PREFIXES = {BOT: "drm_bot_", ADMIN: "drm_admin_"}
RANDOM_LENGTH, CHECKSUM_LENGTH = 30, 6
# Number of random characters that pages display, so that users can tell keys apart.
VISIBLE_LENGTH = 6


def generate_key_secret(kind: str = BOT) -> str:
    """Generate an API key.

    It has 178 random bits, too many to guess. Its digest is therefore safe to store without a salt.
    """
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH))
    return f"{KEY_PREFIXES[kind]}{body}{compute_checksum(body)}"


def compute_checksum(body: str) -> str:
    """Return the CRC32 of the random part in base62. It detects a mistyped key without a database query."""
    number, checksum = crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(BASE62))
        checksum = BASE62[digit] + checksum
    return checksum


def get_key_kind(secret: str) -> str:
    """Return the kind of a key (BOT or ADMIN) by its prefix, or an empty string for an unknown prefix."""
    return next((kind for kind, prefix in KEY_PREFIXES.items() if secret.startswith(prefix)), "")


def is_well_formed_key(secret: str) -> bool:
    """Return whether a text has the format of an API key and a correct checksum."""
    kind = get_key_kind(secret)
    body = secret[len(KEY_PREFIXES[kind]) :] if kind else ""
    if len(body) != RANDOM_LENGTH + CHECKSUM_LENGTH or not set(body) <= set(BASE62):
        return False
    return compute_checksum(body[:RANDOM_LENGTH]) == body[RANDOM_LENGTH:]


def key_digest(secret: str) -> str:
    """Return the SHA-256 digest of a key. The database stores only this digest."""
    return sha256(secret.encode()).hexdigest()


def get_key_prefix(secret: str) -> str:
    return secret[: len(KEY_PREFIXES[get_key_kind(secret)]) + VISIBLE_LENGTH]
