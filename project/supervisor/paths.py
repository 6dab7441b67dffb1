"""Places on this machine: the short directory for sockets, and the development secret."""

import contextlib
import hashlib
import os
import secrets
import tempfile
from pathlib import Path


def get_runtime_dir(var: Path) -> Path:
    """A directory of our own with a short name: socket paths end at about 107 bytes."""
    name = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"dramatis-{os.getuid()}-{name}"


def create_private_dir(directory: Path) -> Path:
    """Create the directory for us alone; refuse one that somebody else put there first."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = directory.lstat()
    if directory.is_symlink() or state.st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to somebody else.")
    directory.chmod(0o700)
    return directory


def get_valkey_socket(var: Path) -> Path:
    return get_runtime_dir(var) / "valkey.sock"


def get_development_key(var: Path) -> str:
    """The signing key of this checkout, made once, so that log-ins outlive a restart."""
    path = var / "secret_key"
    var.mkdir(parents=True, exist_ok=True)
    draft = var / f"secret_key.{os.getpid()}"
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        # Linking fails when another process was first; both then read the same whole file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()
