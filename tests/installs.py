"""npm packages and Python environments that tests install once for all runs of this checkout."""

import fcntl
import shutil
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

INSTALLS = Path(__file__).parents[1] / "var" / "test-installs"
COMPLETE = ".complete"


def install_once(
    name: str, locks: Iterable[Path], install: Callable[[Path], None], *, root: Path = INSTALLS
) -> Path:
    """Return a folder that `install` has filled. Tests must not change it.

    It is filled again if a lock file or the version of Python changes, or if the last attempt did not end.
    Other processes wait.
    """
    digest = sha256(sys.version.encode())
    for path in locks:
        digest.update(path.read_bytes())
    folder = root / f"{name}-{digest.hexdigest()[:16]}"
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / COMPLETE).exists():
            for former in root.glob(f"{name}-{'?' * 16}"):
                shutil.rmtree(former)
            folder.mkdir()
            install(folder)
            (folder / COMPLETE).touch()
    return folder
