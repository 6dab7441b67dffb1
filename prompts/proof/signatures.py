"""Ed25519 signatures over canonical JSON with domain separation, for statements other than checkpoints."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature

from prompts.proof.canonical import build_digest_message
from prompts.proof.signing_keys import PrivateKey, PublicKey, dump_public_key, get_key_id, load_public_key


@dataclass(frozen=True)
class StatementSignature:
    """A signature in Base64 with its key. The key is included, so that a key id is enough to trust it."""

    key: str
    public_key: str
    signature: str

    def load_key(self) -> PublicKey:
        """Return the public key. Raise ValueError if it is unusable or has another id."""
        key = load_public_key(self.public_key)
        if get_key_id(key) != self.key:
            raise ValueError("the key has a different ID")
        return key


def sign_body(domain: str, body: Any, private_key: PrivateKey) -> StatementSignature:
    """Sign the canonical JSON of a body. `domain` names the kind of statement."""
    public = private_key.public_key()
    signature = b64encode(private_key.sign(build_digest_message(domain, body))).decode()
    return StatementSignature(get_key_id(public), dump_public_key(public), signature)


def is_signature_valid(domain: str, body: Any, signature: StatementSignature) -> bool:
    """Return whether the included key made this signature over the body. The key need not be trusted."""
    try:
        key = signature.load_key()
        key.verify(b64decode(signature.signature, validate=True), build_digest_message(domain, body))
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
