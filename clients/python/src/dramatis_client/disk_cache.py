"""Disk cache of prompts, read when the server is unavailable; a corrupt file is ignored."""

import contextlib
import hmac
import json
import logging
import os
import tempfile
from hashlib import sha256
from pathlib import Path

from dramatis_client.cache_entries import CacheEntry, PromptKey, to_datetime
from dramatis_client.problems import Unreachable
from dramatis_client.prompts import parse_prompt

log = logging.getLogger(__name__)

FORMAT = 1
MAX_BYTES = 32 * 1024 * 1024
SUFFIX = ".json"


class DiskCache:
    """Store one file per prompt, in a separate folder for each server and API key.

    Each file carries an HMAC derived from the API key, so a file of another key, prompt
    or program is rejected.
    """

    def __init__(self, folder: Path, url: str, api_key: str) -> None:
        self._mac_key = hmac.new(api_key.encode(), b"dramatis-client copies", sha256).digest()
        self.folder = folder / sha256(f"{url}\0{api_key}".encode()).hexdigest()[:32]

    def path(self, key: PromptKey) -> Path:
        return self.folder / (sha256("\0".join(key.names).encode()).hexdigest()[:32] + SUFFIX)

    def read(self, key: PromptKey) -> CacheEntry | None:
        try:
            return self._read(key)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Unreachable) as error:
            log.warning("A cached prompt cannot be used (%s): %s", type(error).__name__, self.path(key))
            return None

    def write(self, key: PromptKey, entry: CacheEntry) -> None:
        """Write atomically. A disk error is logged and not raised, so the caller still gets the prompt."""
        try:
            self._write(key, entry)
        except OSError as error:
            log.warning("A prompt could not be cached: %s", error)

    def remove(self, key: PromptKey) -> None:
        _remove(self.path(key))

    def clear(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for path in self.folder.glob(f"*{SUFFIX}"):
                _remove(path)

    def _read(self, key: PromptKey) -> CacheEntry:
        data = _read_bytes(self.path(key))
        header_line, _, content = data.partition(b"\n")
        header = json.loads(header_line)
        if header["format"] != FORMAT or not hmac.compare_digest(
            header["seal"], self._sign(key, header, content)
        ):
            raise ValueError("The checksum does not match.")
        fetched_at, checked_at = float(header["fetched_at"]), float(header["checked_at"])
        prompt = parse_prompt(content, header["etag"], to_datetime(fetched_at))
        return CacheEntry(prompt, content, fetched_at, checked_at)

    def _write(self, key: PromptKey, entry: CacheEntry) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        header: dict[str, object] = {
            "format": FORMAT,
            "etag": entry.prompt.etag,
            "fetched_at": entry.fetched_at,
            "checked_at": entry.checked_at,
        }
        header["seal"] = self._sign(key, header, entry.content)
        # mkstemp makes the file readable by its owner only (0600); the rename makes the write atomic.
        descriptor, temporary = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(header).encode() + b"\n" + entry.content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path(key))
        except BaseException:
            _remove(Path(temporary))
            raise

    def _sign(self, key: PromptKey, header: dict[str, object], content: bytes) -> str:
        signed_values = [*key.names, header["etag"], header["fetched_at"], header["checked_at"]]
        return hmac.new(
            self._mac_key, json.dumps(signed_values).encode() + b"\n" + content, sha256
        ).hexdigest()


def _read_bytes(path: Path) -> bytes:
    # Windows has no O_NOFOLLOW.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError("The file is too large.")
    return data


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("A cached prompt could not be removed. Remove it: %s", error)
