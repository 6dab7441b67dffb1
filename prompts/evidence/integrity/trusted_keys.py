"""The keys whose checkpoints are valid. They come from the settings, never from the database.

An attacker who can write to the database can add a key there, and checkpoints that it signed.
"""

from django.conf import settings
from django.utils.translation import gettext as _

from prompts.evidence.integrity.checkpoint_signer import NoSigningKey, load_signing_key
from prompts.proof.signing_keys import PublicKey, UnusableKey, get_key_id, parse_trusted_keys

# Public keys by key id; None if the settings contain only the id.
TrustedKeys = dict[str, PublicKey | None]


def get_trusted_keys() -> TrustedKeys:
    """Return the trusted keys: those of DRAMATIS_TRUSTED_KEYS or, if it is empty, the key that signs.

    Raise NoSigningKey if neither can be used.
    """
    if not settings.DRAMATIS_TRUSTED_KEYS:
        key = load_signing_key().public_key()
        return {get_key_id(key): key}
    try:
        return parse_trusted_keys(settings.DRAMATIS_TRUSTED_KEYS)
    except UnusableKey as error:
        message = _("DRAMATIS_TRUSTED_KEYS cannot be used. %(reason)s") % {"reason": error}
        raise NoSigningKey(message) from error


def find_trust_fault(trusted: TrustedKeys, key_id: str, key: PublicKey) -> str:
    """Return why the key is not trusted, or an empty text if it is."""
    if key_id not in trusted:
        return "it is not one of the trusted keys (DRAMATIS_TRUSTED_KEYS)"
    expected = trusted[key_id]
    return "" if expected is None or expected == key else "the trusted key with this ID is a different key"
