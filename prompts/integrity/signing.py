"""The key that signs checkpoints: from the settings, or made once where development keeps its files."""

import contextlib
import os
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from personas.errors import DomainError
from prompts.proof.signing_keys import (
    PrivateKey,
    UnusableKey,
    dump_key,
    key_id,
    load_key,
    new_key,
    public_pem,
)

PEM = "-----BEGIN"


class NoSigningKey(DomainError):
    """The settings name a key that cannot be used."""

    code = "no_signing_key"


def signing_key() -> PrivateKey:
    """The private key; NoSigningKey with the reason where there is none to use."""
    said: str = settings.DRAMATIS_SIGNING_KEY
    try:
        return load_key(pem_in(said) if said else development_pem(settings.VAR))
    except OSError as error:
        said = _("The signing key cannot be read: %(reason)s.") % {"reason": error.strerror}
        raise NoSigningKey(said) from error
    except UnusableKey as error:
        unusable = _("DRAMATIS_SIGNING_KEY cannot be used. %(reason)s") % {"reason": error}
        raise NoSigningKey(unusable) from error


def pem_in(said: str) -> bytes:
    """The PEM itself, its lines perhaps told apart by \\n as in files of variables; or that of a file."""
    if said.startswith(PEM):
        return said.replace("\\n", "\n").encode()
    return Path(said).read_bytes()


def development_pem(var: Path) -> bytes:
    """Production names its key; only where it need not is one made, once, for us alone."""
    path = var / "signing_key.pem"
    if not path.exists():
        var.mkdir(parents=True, exist_ok=True)
        draft = var / f"signing_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_bytes(dump_key(new_key()))
        # Linking fails when another process was first; both then read the same whole file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()


def public_key_told() -> tuple[str, str]:
    """The id and the PEM of the public key, for everyone to keep."""
    public = signing_key().public_key()
    return key_id(public), public_pem(public)
