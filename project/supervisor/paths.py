"""Paths on this machine: the directory for sockets and the secret key for development."""

import contextlib
import hashlib
import os
import secrets
import tempfile
from pathlib import Path


def get_runtime_dir(var: Path) -> Path:
    """Return the directory for the sockets of the product whose data is in `var`.

    It is in the system's temporary directory and has a short name, because a socket path can have at most
    about 107 bytes.
    """
    name = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"dramatis-{os.getuid()}-{name}"


def create_private_dir(directory: Path) -> Path:
    """Create the directory with mode 0700; raise PermissionError if another user owns it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = directory.lstat()
    if directory.is_symlink() or state.st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to another user.")
    directory.chmod(0o700)
    return directory


def get_valkey_socket(var: Path) -> Path:
    return get_runtime_dir(var) / "valkey.sock"


def get_development_key(var: Path) -> str:
    """Return the SECRET_KEY for development. It is stored in `var`, so that sessions survive a restart."""
    path = var / "secret_key"
    var.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = var / f"secret_key.{os.getpid()}"
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        # os.link is atomic and fails if another process was faster. Both processes then read the same file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()
