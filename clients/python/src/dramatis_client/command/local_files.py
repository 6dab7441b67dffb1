"""Commands that read or write local files: push and pull."""

import argparse

from dramatis_client.command.connection import UsageError, open_client
from dramatis_client.command.output import (
    EXIT_DONE,
    EXIT_REFUSED,
    escape,
    format_push,
    has_rejected_files,
    print_notes,
    print_text,
)
from dramatis_client.context_files import ContextFiles, find_context_files
from dramatis_client.skill_folders import write_skill_folders


def run_push(options: argparse.Namespace) -> int:
    context = find_context_files(options.folder, with_personal=options.personal)
    print_notes(
        [f"skipped: {escape(path)}: {escape(reason)}" for path, reason in context.skipped.items()], EXIT_DONE
    )
    if not context.files:
        raise UsageError("No context files in this folder.")
    is_complete = context.is_complete and not options.partial
    if options.dry_run:
        return print_dry_run(context, is_complete)
    with open_client(options) as server:
        result = server.push(options.source, context.files, is_complete=is_complete)
    print_notes(
        [*format_push(result), f"{result['stored']} of {len(context.files)} files pushed."], EXIT_DONE
    )
    return EXIT_REFUSED if context.skipped or has_rejected_files(result) else EXIT_DONE


def run_pull(options: argparse.Namespace) -> int:
    with open_client(options) as server:
        files = server.pull(options.agent, channel=options.channel, label=options.label)
    result = write_skill_folders(options.folder, files)
    print_notes([f"skipped: {escape(name)}: {reason}" for name, reason in result.skipped.items()], EXIT_DONE)
    counts = (
        f"{len(result.written)} written, {len(result.unchanged)} unchanged, {len(result.removed)} removed"
    )
    return print_notes([f"{counts}."], EXIT_REFUSED if result.skipped else EXIT_DONE)


def print_dry_run(context: ContextFiles, is_complete: bool) -> int:
    for path, text in context.files.items():
        print_text(f"{len(text.encode()):>9,}  {escape(path)}\n")
    rest = "Other files of the source would be removed." if is_complete else "Other files would not change."
    return print_notes([f"{len(context.files)} files would be pushed. {rest}"], EXIT_DONE)
