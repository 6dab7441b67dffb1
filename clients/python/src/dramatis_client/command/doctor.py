"""The command doctor: check settings, server, key and cache, and say what to do."""

import argparse
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from dramatis_client.client import Client
from dramatis_client.command.connection import get_copy_folder, open_client
from dramatis_client.command.output import (
    EXIT_DONE,
    EXIT_REFUSED,
    EXIT_UNAVAILABLE,
    escape,
    print_text,
)
from dramatis_client.problems import DramatisError, Problem, Unreachable
from dramatis_client.requests import get_request
from dramatis_client.retries import send_with_retries
from dramatis_client.version import __version__

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


class Check(NamedTuple):
    """The result of one check."""

    name: str
    detail: str
    # 0 if there is nothing to do. A warning has 0 too, and its level says so.
    exit_code: int = EXIT_DONE
    level: str = "ok"


def run_doctor(options: argparse.Namespace) -> int:
    exit_code = EXIT_DONE
    with open_client(options) as server:
        for check in list_checks(options, server):
            print_text(f"{check.level:<5} {check.name}: {escape(check.detail)}\n")
            exit_code = max(exit_code, check.exit_code)
    return exit_code


def list_checks(options: argparse.Namespace, server: Client) -> Iterator[Check]:
    yield Check("client", f"dramatis-client {__version__}, Python {platform.python_version()}")
    yield check_address(options.url)
    yield check_copies(get_copy_folder())
    access = check_access(server)
    yield access
    if options.agent and options.channel and access.exit_code == EXIT_DONE:
        yield check_prompt(server, options.agent, options.channel, options.label)


def check_address(url: str) -> Check:
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        return Check(
            "address", f"{url} is not encrypted: the key can be intercepted. Use https.", level="warn"
        )
    return Check("address", url)


def check_copies(folder: str) -> Check:
    if not folder:
        return Check("copies", "No home folder found. Set DRAMATIS_CACHE_DIR.", level="warn")
    path = Path(folder)
    existing = next(one for one in (path, *path.parents) if one.exists())
    if not existing.is_dir() or not is_writable(existing):
        return Check("copies", f"{folder} is not writable. Set DRAMATIS_CACHE_DIR.", EXIT_REFUSED, "fail")
    return Check("copies", f"{len(list(path.glob('*/*.json')))} in {folder}")


def is_writable(folder: Path) -> bool:
    try:
        # Only an attempt tells: permissions, read-only mounts and quotas differ.
        probe = folder / f".dramatis-{time.time_ns()}"
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError:
        return False
    return True


def check_access(server: Client) -> Check:
    """Make a request that any key may make: 403 also means that the key is valid."""
    started_at = time.monotonic()
    try:
        response = server._run(send_with_retries(get_request("agents", limit="1"), 1))
        if not response.is_success:
            raise response.to_error()
    except Unreachable as error:
        return Check(
            "server", f"{error} Check DRAMATIS_URL, the network and any proxy.", EXIT_UNAVAILABLE, "fail"
        )
    except Problem as problem:
        if problem.status == 401:
            advice = "Check DRAMATIS_KEY, or create a new key."
            return Check("key", f"{problem.status} {problem.code}. {advice}", EXIT_REFUSED, "fail")
        if problem.status != 403:
            return Check("server", str(problem), EXIT_UNAVAILABLE, "fail")
    milliseconds = (time.monotonic() - started_at) * 1_000
    return Check("server and key", f"accepted in {milliseconds:.0f} ms")


def check_prompt(server: Client, agent: str, channel: str, label: str) -> Check:
    """Fetch the prompt. This is a fetch like any other, with a row in the ledger."""
    try:
        prompt = server.get_prompt(agent, channel, label=label, attempts=1)
    except DramatisError as error:
        return Check("prompt", str(error), EXIT_REFUSED, "fail")
    size = f"{len(prompt.text):,} characters"
    return Check("prompt", f"version {prompt.version}, {size}, ledger row {prompt.ledger_id}")
