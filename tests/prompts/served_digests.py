"""Compare the salted digests of ledger rows with the plain SHA-256 of served texts."""

from prompts.evidence.ledger.served_salts import find_served_entry
from prompts.models import LedgerEntry


def is_recorded(row: LedgerEntry, digest: str) -> bool:
    """Whether the row records that a text with this plain SHA-256 was served."""
    return row.served_digest != digest and find_served_entry([row], digest) is row
