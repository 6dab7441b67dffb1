"""Open a client with the options and environment variables of the command."""

import argparse
import os
from pathlib import Path

from dramatis_client import settings
from dramatis_client.client import Client

SETTINGS = (
    "Set DRAMATIS_URL to the URL of the server and DRAMATIS_KEY to an API key. Keys cannot be "
    "passed as arguments."
)
DEFAULT_TIMEOUT = 10.0


class UsageError(Exception):
    """Wrong arguments or settings; the message is printed for the user."""


def open_client(options: argparse.Namespace, cache_dir: str = "") -> Client:
    if not options.url or not os.environ.get(settings.KEY, "").strip():
        raise UsageError(f"DRAMATIS_URL and DRAMATIS_KEY are required. {SETTINGS}")
    has_timeout = options.timeout is not None or os.environ.get(settings.TIMEOUT)
    timeout = options.timeout if has_timeout else DEFAULT_TIMEOUT
    return Client(options.url, cache_dir=cache_dir, timeout=timeout)


def get_copy_folder() -> str:
    """Return the folder of the copies: DRAMATIS_CACHE_DIR, or `dramatis` in the user's cache folder."""
    folder = os.environ.get(settings.CACHE_DIR, "").strip()
    cache_home = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    try:
        return str(Path(folder or f"{cache_home}/dramatis").expanduser())
    except RuntimeError:
        # There is no home folder: then there are no copies.
        return ""
