"""The `dramatis` command: what the client can do, from a shell."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from dramatis_client.client import Client
from dramatis_client.command_words import diff_lines, is_lacking, plain, problem_lines, push_lines
from dramatis_client.context_files import Found, TooMuch, find_context_files
from dramatis_client.problems import Problem, Unreachable
from dramatis_client.prompts import Prompt

DONE, REFUSED, USAGE, AWAY = 0, 1, 2, 3
ENDINGS = (
    "Ends with 0 when done, 1 when (part of it) refused, 2 when called wrongly, 3 when the server is away."
)
SETTINGS = "DRAMATIS_URL is the server's address, DRAMATIS_KEY the key; a key is never an argument."


class WronglyCalled(Exception):
    """The message is for the person at the shell."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except Problem as problem:
        return told(problem_lines(problem), REFUSED)
    except Unreachable as error:
        return told([str(error)], AWAY)
    except (WronglyCalled, TooMuch, NotADirectoryError, ValueError) as error:
        return told([str(error)], USAGE)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser("dramatis", description=__doc__, epilog=f"{SETTINGS} {ENDINGS}")
    top.add_argument("--url", default=os.environ.get("DRAMATIS_URL", ""), help="instead of DRAMATIS_URL")
    top.add_argument("--timeout", type=float, default=10.0, help="seconds to wait for an answer")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    add_prompt(commands.add_parser("fetch", help="print the prompt of an agent on a channel"), fetch)
    add_render(commands.add_parser("render", help="print it with facts of one call"))
    add_push(commands.add_parser("push", help="push a project's context files to a source"))
    add_history(commands)
    return top


def add_prompt(command: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    command.add_argument("agent")
    command.add_argument("channel")
    command.add_argument("--label", default="production")
    command.add_argument("--json", action="store_true", help="all that is known, not the words alone")
    command.set_defaults(run=run)


def add_render(command: argparse.ArgumentParser) -> None:
    add_prompt(command, render)
    command.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a fact of the call; the value is JSON, or else taken as text",
    )


def add_push(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", help="a source for pushed files, by its slug")
    command.add_argument("folder", nargs="?", default=".")
    command.add_argument("--dry-run", action="store_true", help="show what would be pushed")
    command.add_argument("--partial", action="store_true", help="keep files that are not in this push")
    command.add_argument("--personal", action="store_true", help="CLAUDE.local.md files too")
    command.set_defaults(run=push)


def add_history(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    again = commands.add_parser("replay", help="print the very words that were handed out")
    again.add_argument("ledger_id", type=int)
    again.add_argument("--json", action="store_true")
    again.set_defaults(run=replay)
    compare = commands.add_parser("diff", help="print what changed between two versions, by digest")
    compare.add_argument("older")
    compare.add_argument("newer")
    compare.add_argument("--json", action="store_true")
    compare.set_defaults(run=diff)


# --- the commands --------------------------------------------------------------------------------------


def fetch(options: argparse.Namespace) -> int:
    with client(options) as server:
        return shown(server.prompt(options.agent, options.channel, options.label), options)


def render(options: argparse.Namespace) -> int:
    facts = dict(map(fact, options.fact))
    with client(options) as server:
        return shown(server.render(options.agent, options.channel, label=options.label, **facts), options)


def push(options: argparse.Namespace) -> int:
    found = find_context_files(options.folder, with_personal=options.personal)
    told([f"left out: {plain(path)}: {plain(why)}" for path, why in found.skipped.items()], DONE)
    if not found.files:
        raise WronglyCalled("There are no context files in this folder.")
    is_complete = found.is_complete and not options.partial
    if options.dry_run:
        return listed(found, is_complete)
    with client(options) as server:
        said = server.push(options.source, found.files, is_complete=is_complete)
    told([*push_lines(said), f"{said['taken']} of {len(found.files)} files pushed."], DONE)
    return REFUSED if found.skipped or is_lacking(said) else DONE


def replay(options: argparse.Namespace) -> int:
    with client(options) as server:
        said = server.replay(options.ledger_id)
    return written(said) if options.json else printed(str(said["text"]))


def diff(options: argparse.Namespace) -> int:
    with client(options) as server:
        said = server.diff(options.newer, against=options.older)
    return written(said) if options.json else printed("\n".join(diff_lines(said)) + "\n")


# --- reading and printing ------------------------------------------------------------------------------


def client(options: argparse.Namespace) -> Client:
    key = os.environ.get("DRAMATIS_KEY", "").strip()
    if not options.url or not key:
        raise WronglyCalled(f"Set DRAMATIS_URL and DRAMATIS_KEY first. {SETTINGS}")
    return Client(options.url, key, timeout=options.timeout)


def fact(said: str) -> tuple[str, Any]:
    name, equals, value = said.partition("=")
    if not name or not equals:
        raise WronglyCalled(f"A fact is written NAME=VALUE, not {plain(said)}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def listed(found: Found, is_complete: bool) -> int:
    for path, text in found.files.items():
        printed(f"{len(text.encode()):>9,}  {plain(path)}\n")
    rest = "Files that the source has besides are let go." if is_complete else "Others stay as they are."
    return told([f"{len(found.files)} files would be pushed. {rest}"], DONE)


def shown(prompt: Prompt, options: argparse.Namespace) -> int:
    told([f"note: {plain(warning)}" for warning in prompt.warnings], DONE)
    return written(asdict(prompt)) if options.json else printed(prompt.text)


def written(value: Any) -> int:
    return printed(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def printed(text: str) -> int:
    """To the byte, whatever the terminal's own encoding and ends of lines."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
    return DONE


def told(lines: Sequence[str], ending: int) -> int:
    for line in lines:
        sys.stderr.write(f"dramatis: {line}\n")
    return ending


if __name__ == "__main__":
    sys.exit(main())
