"""The `dramatis` command: what the client can do, from a shell."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from dramatis_client.client import Client
from dramatis_client.command_output import (
    escape,
    format_diff,
    format_problem,
    format_push,
    has_rejected_files,
)
from dramatis_client.context_files import ContextFiles, PushTooLarge, find_context_files
from dramatis_client.problems import Problem, Unreachable
from dramatis_client.prompts import Prompt
from dramatis_client.skill_folders import write_skill_folders

EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_UNAVAILABLE = 0, 1, 2, 3
EXIT_CODES = (
    "Ends with 0 when done, 1 when (part of it) refused, 2 when called wrongly, 3 when the server is away."
)
SETTINGS = "DRAMATIS_URL is the server's address, DRAMATIS_KEY the key; a key is never an argument."


class UsageError(Exception):
    """Wrong arguments or settings; the message is printed for the user."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(arguments)
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except Problem as problem:
        return print_notes(format_problem(problem), EXIT_REFUSED)
    except Unreachable as error:
        return print_notes([str(error)], EXIT_UNAVAILABLE)
    except (UsageError, PushTooLarge, OSError, ValueError) as error:
        return print_notes([str(error)], EXIT_USAGE)


def build_parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser("dramatis", description=__doc__, epilog=f"{SETTINGS} {EXIT_CODES}")
    top.add_argument("--url", default=os.environ.get("DRAMATIS_URL", ""), help="instead of DRAMATIS_URL")
    top.add_argument("--timeout", type=float, default=10.0, help="seconds to wait for an answer")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    add_prompt_arguments(
        commands.add_parser("fetch", help="print the prompt of an agent on a channel"), run_fetch
    )
    add_render_arguments(commands.add_parser("render", help="print it with facts of one call"))
    add_push_arguments(commands.add_parser("push", help="push a project's context files to a source"))
    add_pull_arguments(commands.add_parser("pull", help="write an agent's skills to a folder"))
    add_history_commands(commands)
    return top


def add_prompt_arguments(command: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    command.add_argument("agent")
    command.add_argument("channel")
    command.add_argument("--label", default="production")
    command.add_argument("--json", action="store_true", help="all that is known, not the words alone")
    command.set_defaults(run=run)


def add_render_arguments(command: argparse.ArgumentParser) -> None:
    add_prompt_arguments(command, run_render)
    command.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a fact of the call; the value is JSON, or else taken as text",
    )


def add_push_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", help="a source for pushed files, by its slug")
    command.add_argument("folder", nargs="?", default=".")
    command.add_argument("--dry-run", action="store_true", help="show what would be pushed")
    command.add_argument("--partial", action="store_true", help="keep files that are not in this push")
    command.add_argument("--personal", action="store_true", help="CLAUDE.local.md files too")
    command.set_defaults(run=run_push)


def add_pull_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent")
    command.add_argument("folder", help="the agent's folder of pulled skills; one subfolder for each")
    command.set_defaults(run=run_pull)


def add_history_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    replay = commands.add_parser("replay", help="print the exact text that was served")
    replay.add_argument("ledger_id", type=int)
    replay.add_argument("--json", action="store_true")
    replay.set_defaults(run=run_replay)
    diff = commands.add_parser("diff", help="print what changed between two versions, by digest")
    diff.add_argument("older")
    diff.add_argument("newer")
    diff.add_argument("--json", action="store_true")
    diff.set_defaults(run=run_diff)


# --- the commands --------------------------------------------------------------------------------------


def run_fetch(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        return print_prompt(server.get_prompt(options.agent, options.channel, label=options.label), options)


def run_render(options: argparse.Namespace) -> int:
    facts = dict(map(parse_fact, options.fact))
    with open_client(options) as server:
        prompt = server.render(options.agent, options.channel, label=options.label, **facts)
        return print_prompt(prompt, options)


def run_push(options: argparse.Namespace) -> int:
    context = find_context_files(options.folder, with_personal=options.personal)
    print_notes(
        [f"left out: {escape(path)}: {escape(reason)}" for path, reason in context.skipped.items()], EXIT_DONE
    )
    if not context.files:
        raise UsageError("There are no context files in this folder.")
    is_complete = context.is_complete and not options.partial
    if options.dry_run:
        return print_dry_run(context, is_complete)
    with open_client(options) as server:
        result = server.push(options.source, context.files, is_complete=is_complete)
    print_notes([*format_push(result), f"{result['taken']} of {len(context.files)} files pushed."], EXIT_DONE)
    return EXIT_REFUSED if context.skipped or has_rejected_files(result) else EXIT_DONE


def run_pull(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        result = write_skill_folders(options.folder, server.pull(options.agent))
    print_notes([f"left out: {escape(name)}: {reason}" for name, reason in result.skipped.items()], EXIT_DONE)
    counts = (
        f"{len(result.written)} written, {len(result.unchanged)} unchanged, {len(result.removed)} removed"
    )
    return print_notes([f"{counts}."], EXIT_REFUSED if result.skipped else EXIT_DONE)


def run_replay(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        result = server.replay(options.ledger_id)
    return print_json(result) if options.json else print_text(str(result["text"]))


def run_diff(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        result = server.diff(options.newer, against=options.older)
    return print_json(result) if options.json else print_text("\n".join(format_diff(result)) + "\n")


# --- parsing and printing ------------------------------------------------------------------------------


def open_client(options: argparse.Namespace) -> Client:
    key = os.environ.get("DRAMATIS_KEY", "").strip()
    if not options.url or not key:
        raise UsageError(f"Set DRAMATIS_URL and DRAMATIS_KEY first. {SETTINGS}")
    return Client(options.url, key, timeout=options.timeout)


def parse_fact(argument: str) -> tuple[str, Any]:
    """Parse NAME=VALUE; the value is JSON, or else plain text."""
    name, equals, value = argument.partition("=")
    if not name or not equals:
        raise UsageError(f"A fact is written NAME=VALUE, not {escape(argument)}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def print_dry_run(context: ContextFiles, is_complete: bool) -> int:
    for path, text in context.files.items():
        print_text(f"{len(text.encode()):>9,}  {escape(path)}\n")
    rest = "Files that the source has besides are let go." if is_complete else "Others stay as they are."
    return print_notes([f"{len(context.files)} files would be pushed. {rest}"], EXIT_DONE)


def print_prompt(prompt: Prompt, options: argparse.Namespace) -> int:
    print_notes([f"note: {escape(warning)}" for warning in prompt.warnings], EXIT_DONE)
    return print_json(asdict(prompt)) if options.json else print_text(prompt.text)


def print_json(value: Any) -> int:
    return print_text(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_text(text: str) -> int:
    """Write UTF-8 bytes unchanged, whatever the terminal's encoding and line ends."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
    return EXIT_DONE


def print_notes(lines: Sequence[str], exit_code: int) -> int:
    """Write lines to standard error and return the exit code."""
    for line in lines:
        sys.stderr.write(f"dramatis: {line}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
