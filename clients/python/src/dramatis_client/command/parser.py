"""Arguments of the command, and its exit codes."""

import argparse
import os
from collections.abc import Callable, Sequence

from dramatis_client.command.completion import SCRIPTS, run_completion
from dramatis_client.command.connection import SETTINGS, UsageError
from dramatis_client.command.doctor import run_doctor
from dramatis_client.command.history import run_diff, run_replay
from dramatis_client.command.local_files import run_pull, run_push
from dramatis_client.command.output import (
    EXIT_REFUSED,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
    format_problem,
    print_notes,
)
from dramatis_client.command.served_prompts import run_fetch, run_render
from dramatis_client.context_files import PushTooLarge
from dramatis_client.problems import Problem, Unreachable
from dramatis_client.version import __version__

DESCRIPTION = "Command line for the prompts, skills and context files of a Dramatis server."
EXIT_CODES = """\
exit codes:
  0  done
  1  rejected by the server, or something was skipped, or a check of doctor failed
  2  wrong arguments or settings, a folder that cannot be written, or too much to push
  3  the server is unavailable, and there is no copy
"""


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
    top = argparse.ArgumentParser(
        "dramatis",
        description=DESCRIPTION,
        epilog=f"{SETTINGS}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"dramatis-client {__version__}")
    top.add_argument("--url", default=os.environ.get("DRAMATIS_URL", ""), help="instead of DRAMATIS_URL")
    top.add_argument("--timeout", type=float, help="timeout in seconds (default: DRAMATIS_TIMEOUT, or 10)")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    add_fetch_arguments(
        commands.add_parser("fetch", help="print the prompt of an agent on a channel, and cache it")
    )
    add_render_arguments(commands.add_parser("render", help="print the prompt with values of one call"))
    add_push_arguments(commands.add_parser("push", help="push the context files of a project to a source"))
    add_pull_arguments(commands.add_parser("pull", help="write the skills of an agent to a folder"))
    add_history_commands(commands)
    add_doctor_arguments(commands.add_parser("doctor", help="check settings, server, key and cache"))
    completion = commands.add_parser("completion", help="print a completion script for a shell")
    completion.add_argument("shell", choices=list(SCRIPTS))
    completion.set_defaults(run=run_completion, parser=top)
    return top


def add_prompt_arguments(command: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    command.add_argument("agent")
    command.add_argument("channel")
    command.add_argument("--label", default="production", help="label (default: production)")
    command.add_argument("--json", action="store_true", help="print all fields as JSON instead of the text")
    command.set_defaults(run=run)


def add_fetch_arguments(command: argparse.ArgumentParser) -> None:
    add_prompt_arguments(command, run_fetch)
    command.add_argument(
        "--version", type=int, metavar="N", help=("number of a version that the label has pointed to")
    )
    command.add_argument("--no-copy", action="store_true", help="do not use the cache")


def add_doctor_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent", nargs="?", help="also fetch the prompt of this agent on the channel")
    command.add_argument("channel", nargs="?")
    command.add_argument("--label", default="production", help="label to fetch")
    command.set_defaults(run=run_doctor)


def add_render_arguments(command: argparse.ArgumentParser) -> None:
    add_prompt_arguments(command, run_render)
    command.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of the call; parsed as JSON, otherwise used as text",
    )


def add_push_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", help="slug of a source for pushed files")
    command.add_argument("folder", nargs="?", default=".")
    command.add_argument("--dry-run", action="store_true", help="show what would be pushed, without pushing")
    command.add_argument("--partial", action="store_true", help="keep files that are not in this push")
    command.add_argument("--personal", action="store_true", help="include CLAUDE.local.md files")
    command.set_defaults(run=run_push)


def add_pull_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent")
    command.add_argument("folder", help="folder for the skills; each gets a subfolder")
    command.add_argument("--channel", default="", help="required if the agent has several channels")
    command.add_argument("--label", default="", help="default: production")
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
