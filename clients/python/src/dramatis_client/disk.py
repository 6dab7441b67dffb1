"""The last good copy of each prompt on disk, for when the server is away; a spoilt file is ignored."""

import contextlib
import hmac
import json
import logging
import os
import tempfile
from hashlib import sha256
from pathlib import Path

from dramatis_client.copies import Copy, Name, moment
from dramatis_client.problems import Unreachable
from dramatis_client.prompts import read_prompt

log = logging.getLogger(__name__)

FORMAT = 1
LARGEST = 32 * 1024 * 1024
SUFFIX = ".json"


class CopyFiles:
    """One file per prompt in a folder of its own for each server and key.

    Files are sealed with the key: who cannot fetch a prompt can neither read it by mistake nor plant one.
    """

    def __init__(self, folder: Path, url: str, key: str) -> None:
        self._seal = hmac.new(key.encode(), b"dramatis-client copies", sha256).digest()
        self.folder = folder / sha256(f"{url}\0{key}".encode()).hexdigest()[:32]

    def path(self, name: Name) -> Path:
        return self.folder / (sha256("\0".join(name).encode()).hexdigest()[:32] + SUFFIX)

    def read(self, name: Name) -> Copy | None:
        try:
            return self._read(name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Unreachable) as error:
            log.warning("A kept prompt cannot be used (%s): %s", type(error).__name__, self.path(name))
            return None

    def write(self, name: Name, copy: Copy) -> None:
        """Whole or not at all; a disk that takes nothing is no reason to withhold the prompt."""
        try:
            self._write(name, copy)
        except OSError as error:
            log.warning("A prompt cannot be kept on disk: %s", error)

    def forget(self, name: Name) -> None:
        _remove(self.path(name))

    def forget_all(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for path in self.folder.glob(f"*{SUFFIX}"):
                _remove(path)

    def _read(self, name: Name) -> Copy:
        data = _bytes_of(self.path(name))
        head, _, content = data.partition(b"\n")
        said = json.loads(head)
        if said["format"] != FORMAT or not hmac.compare_digest(
            said["seal"], self._sealed(name, said, content)
        ):
            raise ValueError("The seal does not fit.")
        fetched_at, checked_at = float(said["fetched_at"]), float(said["checked_at"])
        prompt = read_prompt(content, said["etag"], moment(fetched_at))
        return Copy(prompt, content, fetched_at, checked_at)

    def _write(self, name: Name, copy: Copy) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        head: dict[str, object] = {
            "format": FORMAT,
            "etag": copy.prompt.etag,
            "fetched_at": copy.fetched_at,
            "checked_at": copy.checked_at,
        }
        head["seal"] = self._sealed(name, head, copy.content)
        # Made for the owner alone, and renamed once it is whole.
        number, scratch = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(number, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + copy.content)
                file.flush()
                os.fsync(file.fileno())
            Path(scratch).replace(self.path(name))
        except BaseException:
            _remove(Path(scratch))
            raise

    def _sealed(self, name: Name, head: dict[str, object], content: bytes) -> str:
        facts = [*name, head["etag"], head["fetched_at"], head["checked_at"]]
        return hmac.new(self._seal, json.dumps(facts).encode() + b"\n" + content, sha256).hexdigest()


def _bytes_of(path: Path) -> bytes:
    # Windows has no such flag, and hardly any links.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(number, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError("The file is too large.")
    return data


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("A kept prompt cannot be removed; please do: %s", error)
