"""Report a loaded instructions file to Dramatis: the command of the Claude Code hook InstructionsLoaded.

It uses the standard library only. The exit code is always 0, because a failed report must not disturb a
session; the reason is printed to standard error.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 5
# The server accepts no longer texts. Longer files are reported without their text.
MAX_TEXT_LENGTH = 400_000
REQUIRED = ("DRAMATIS_URL", "DRAMATIS_KEY", "DRAMATIS_AGENT", "DRAMATIS_CHANNEL")


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
    project = Path(environment.get("CLAUDE_PROJECT_DIR") or str(event.get("cwd") or "."))
    loaded = Path(str(event.get("file_path") or ""))
    expected = project / (environment.get("DRAMATIS_FILE") or "CLAUDE.md")
    # Claude Code also loads files of the user and of other folders, which do not come from Dramatis.
    if loaded.resolve() == expected.resolve():
        send_report(environment, build_report(environment, event, loaded, project))


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


def send_report(environment: Mapping[str, str], report: Mapping[str, str]) -> None:
    url = environment["DRAMATIS_URL"].rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise HookError("DRAMATIS_URL must begin with https://")
    request = urllib.request.Request(  # noqa: S310  # checked above
        f"{url}/api/v1/prompts:report",
        data=json.dumps(report).encode(),
        headers={
            "Authorization": f"Bearer {environment['DRAMATIS_KEY']}",
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
