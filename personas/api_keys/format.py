"""Format of API keys: prefix by kind, 30 random characters, 6 characters of checksum.

Only the SHA-256 digest of a key is stored.
"""

import secrets
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from zlib import crc32

BASE62 = digits + ascii_uppercase + ascii_lowercase
# A bot's key belongs to the workspace; an admin key acts for the user who created it.
BOT, ADMIN = "bot", "admin"
KEY_PREFIXES = {BOT: "drm_bot_", ADMIN: "drm_admin_"}
RANDOM_LENGTH, CHECKSUM_LENGTH = 30, 6
# Random characters that are displayed to identify a key.
VISIBLE_LENGTH = 6


def generate_key_secret(kind: str = BOT) -> str:
    """Generate a key; with 178 random bits an unsalted digest of it is safe to store."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH))
    return f"{KEY_PREFIXES[kind]}{body}{compute_checksum(body)}"


def compute_checksum(body: str) -> str:
    """Return the CRC32 of the random part in base62; it detects a mistyped key without a database query."""
    number, checksum = crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(BASE62))
        checksum = BASE62[digit] + checksum
    return checksum


def get_key_kind(secret: str) -> str:
    """Return the kind of a key by its prefix; an empty string if the prefix is unknown."""
    return next((kind for kind, prefix in KEY_PREFIXES.items() if secret.startswith(prefix)), "")


def is_well_formed_key(secret: str) -> bool:
    """Return whether the text has the format and checksum of a key."""
    kind = get_key_kind(secret)
    body = secret[len(KEY_PREFIXES[kind]) :] if kind else ""
    if len(body) != RANDOM_LENGTH + CHECKSUM_LENGTH or not set(body) <= set(BASE62):
        return False
    return compute_checksum(body[:RANDOM_LENGTH]) == body[RANDOM_LENGTH:]


def key_digest(secret: str) -> str:
    """Return the digest under which a key is stored."""
    return sha256(secret.encode()).hexdigest()


def get_key_prefix(secret: str) -> str:
    return secret[: len(KEY_PREFIXES[get_key_kind(secret)]) + VISIBLE_LENGTH]
