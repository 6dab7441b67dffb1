"""Commands about what was served before: replay and diff."""

import argparse

from dramatis_client.command.connection import open_client
from dramatis_client.command.output import format_diff, print_json, print_text


def run_replay(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        result = server.replay(options.ledger_id)
    return print_json(result) if options.json else print_text(str(result["text"]))


def run_diff(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        result = server.diff(options.newer, against=options.older)
    return print_json(result) if options.json else print_text("\n".join(format_diff(result)) + "\n")
