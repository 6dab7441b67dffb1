"""Commands that print a prompt: fetch and render."""

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from dramatis_client.command.connection import UsageError, get_copy_folder, open_client
from dramatis_client.command.output import EXIT_DONE, escape, print_json, print_notes, print_text
from dramatis_client.prompts import Prompt


def run_fetch(options: argparse.Namespace) -> int:
    """Print the prompt of the server, or the last copy if the server is unavailable."""
    started_at = datetime.now(UTC)
    with open_client(options, "" if options.no_copy else get_copy_folder()) as server:
        # The time in a copy is old: without ETags, the server sends the text with the current time.
        server._core.cache.is_revalidating = False  # the same package
        prompt = server.get_prompt(
            options.agent, options.channel, label=options.label, version=options.version
        )
    if prompt.fetched_at < started_at:
        print_notes(
            [
                (
                    "note: The server is unavailable. This is the cached copy of "
                    f"{prompt.fetched_at:%Y-%m-%d %H:%M:%SZ}."
                )
            ],
            EXIT_DONE,
        )
    return print_prompt(prompt, options)


def run_render(options: argparse.Namespace) -> int:
    facts = dict(map(parse_fact, options.fact))
    with open_client(options) as server:
        prompt = server.render(options.agent, options.channel, label=options.label, **facts)
        return print_prompt(prompt, options)


def parse_fact(argument: str) -> tuple[str, Any]:
    """Parse NAME=VALUE; the value is JSON, or else plain text."""
    name, equals, value = argument.partition("=")
    if not name or not equals:
        raise UsageError(f"Write values as NAME=VALUE, not {escape(argument)}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def print_prompt(prompt: Prompt, options: argparse.Namespace) -> int:
    print_notes([f"note: {escape(warning)}" for warning in prompt.warnings], EXIT_DONE)
    return print_json(asdict(prompt)) if options.json else print_text(prompt.text)
