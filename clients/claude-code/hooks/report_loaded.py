"""Report a loaded instructions file to Dramatis: the command of the Claude Code hook InstructionsLoaded.

It uses the standard library only. The exit code is always 0, because a failed report must not disturb a
session; the reason is printed to standard error.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 5
# The server accepts no longer texts. Longer files are reported without their text.
MAX_TEXT_LENGTH = 400_000
REQUIRED = ("DRAMATIS_AGENT", "DRAMATIS_CHANNEL")
# Below the home directory. The settings of a project can set any environment variable, so the address and
# the key are not read from the environment: the key is sent only to the address next to it in this file.
CONFIG_PATH = ".config/dramatis/claude-code.json"


class HookError(Exception):
    """The file cannot be reported; the message says why."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treat a redirect as an error: the key must not be sent to another address."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def main(environment: Mapping[str, str]) -> None:
    missing = [name for name in REQUIRED if not environment.get(name)]
    if missing:
        raise HookError(f"set {', '.join(missing)}")
    event = read_event()
    project = Path(environment.get("CLAUDE_PROJECT_DIR") or str(event.get("cwd") or ".")).resolve()
    loaded = Path(str(event.get("file_path") or "")).resolve()
    expected = (project / (environment.get("DRAMATIS_FILE") or "CLAUDE.md")).resolve()
    if not is_inside(expected, project):
        raise HookError("DRAMATIS_FILE must be a file of the project")
    # Claude Code also loads files of the user and of other folders, which do not come from Dramatis.
    if loaded == expected:
        connection = read_connection(environment, project)
        send_report(connection, build_report(environment, event, loaded, project))


def is_inside(path: Path, folder: Path) -> bool:
    return folder in path.parents


class Connection(NamedTuple):
    """Address of the server, and the key that is sent to it."""

    url: str
    key: str


def read_connection(environment: Mapping[str, str], project: Path) -> Connection:
    """Read the address and the key from the user's own file, which no project can change."""
    path = (Path.home() / CONFIG_PATH).resolve()
    if is_inside(path, project):
        raise HookError(f"{path} is in the project; keep it in your home directory")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        connection = Connection(str(values["url"]).rstrip("/"), str(values["key"]).strip())
    except FileNotFoundError:
        raise HookError(
            f'write {{"url": "https://…", "key": "drm_…"}} to {path}; they are not read from environment '
            "variables, which the settings of a project can change"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HookError(f"{path} needs the values url and key: {error!r}") from None
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise HookError(f"other users can read {path}: run chmod 600 on it")
    other = environment.get("DRAMATIS_URL", "").rstrip("/")
    if other not in ("", connection.url):
        raise HookError(f"DRAMATIS_URL is {other}, but the key in {path} belongs to {connection.url}")
    check_url(connection.url)
    return connection


def check_url(url: str) -> None:
    """Raise HookError unless the key is encrypted on the way, or does not leave this machine."""
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise HookError(f"{url} is not a URL") from None
    if parts.scheme == "https" and host:
        return
    if parts.scheme != "http" or not is_loopback(host):
        raise HookError(f"{url} must begin with https://; http:// is allowed only for this machine")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_event() -> dict[str, Any]:
    try:
        event = json.load(sys.stdin)
    except ValueError as error:
        raise HookError(f"the input of the hook is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise HookError("the input of the hook is not an object")
    return event


def build_report(
    environment: Mapping[str, str], event: Mapping[str, Any], loaded: Path, project: Path
) -> dict[str, str]:
    try:
        data = loaded.read_bytes()
    except OSError as error:
        raise HookError(f"{loaded} cannot be read: {error.strerror}") from None
    report = {
        "agent": environment["DRAMATIS_AGENT"],
        "channel": environment["DRAMATIS_CHANNEL"],
        "digest": hashlib.sha256(data).hexdigest(),
        "path": os.path.relpath(loaded, project)[:400],
        "reason": str(event.get("load_reason") or "")[:40],
        "session": str(event.get("session_id") or "")[:128],
    }
    text = decode_text(data)
    if text is not None and environment.get("DRAMATIS_SEND_TEXT") != "0":
        report["text"] = text
    return report


def decode_text(data: bytes) -> str | None:
    """Return the text of a file, or None if it is too long or not UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= MAX_TEXT_LENGTH else None


def send_report(connection: Connection, report: Mapping[str, str]) -> None:
    request = urllib.request.Request(  # noqa: S310  # checked by check_url
        f"{connection.url}/api/v1/prompts:report",
        data=json.dumps(report).encode(),
        headers={
            "Authorization": f"Bearer {connection.key}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=TIMEOUT_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        with error:
            raise HookError(f"the server returned {error.code}: {read_detail(error)}") from None
    except OSError as error:
        raise HookError(f"the server cannot be reached: {getattr(error, 'reason', error)}") from None


def read_detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error.reason)


if __name__ == "__main__":
    try:
        main(os.environ)
    except HookError as problem:
        sys.stderr.write(f"dramatis: the loaded prompt is not reported: {problem}\n")
