"""Print the prompt that a layout assembles from inputs in JSON, without a database."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError

from prompts.assembly.builder import AssembledPrompt, build_filled_prompt
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import dataclass_json, parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.sizes import list_section_sizes
from prompts.assembly.slots import Slots
from prompts.publishing.builds.tokens import count_tokens
from prompts.publishing.versions.tool_definitions import count_definition_tokens, list_definitions_json


class Command(BaseCommand):
    help = "Print the exact text of a prompt or, with --report, a JSON report of how its inputs were used."
    # No system checks, because the command does not use the database.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--layout", required=True, metavar="NAME", help=", ".join(LAYOUTS))
        parser.add_argument("--inputs", required=True, metavar="FILE", help="JSON; - reads standard input")
        parser.add_argument("--slots", metavar="FILE", help="JSON; - reads standard input")
        parser.add_argument("--report", action="store_true", help="print the report instead of the text")

    def handle(self, *args: Any, **options: Any) -> None:
        layout = LAYOUTS.get(options["layout"])
        if layout is None:
            exit_with_error(f"{options['layout']}: unknown layout; choose one of {', '.join(LAYOUTS)}")
        if options["inputs"] == options["slots"] == "-":
            exit_with_error("standard input can be read only once: pass inputs or slots as a file")
        try:
            inputs = parse_dataclass(PromptInputs, read_json_file(options["inputs"]))
            slots = parse_dataclass(Slots, read_json_file(options["slots"]) if options["slots"] else {})
            prompt = build_filled_prompt(layout, inputs, slots)
        except AssemblyError as error:
            exit_with_error(str(error))
        output = format_json(prompt_report_json(prompt)) + "\n" if options["report"] else prompt.text
        # Written as bytes to avoid line ending and encoding conversions of the platform.
        sys.stdout.buffer.write(output.encode())
        sys.stdout.buffer.flush()


def read_json_file(name: str) -> Any:
    """Read JSON from a file, or from standard input for `-`."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return json.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        exit_with_error(f"{name}: {error.strerror}")
    except RecursionError:
        exit_with_error(f"{name}: this JSON is nested too deeply")
    except ValueError as error:
        exit_with_error(f"{name}: invalid JSON: {error}")


def prompt_report_json(prompt: AssembledPrompt) -> dict[str, Any]:
    """Return everything about a prompt except its text."""
    return {
        "layout": prompt.layout,
        "characters": len(prompt.text),
        "tokens": count_tokens(prompt.text),
        "tool_tokens": count_definition_tokens(list_definitions_json(prompt.tools), count_tokens),
        "report": dataclass_json(prompt.report),
        "sizes": [row._asdict() for row in list_section_sizes(prompt, count_tokens)],
        "segments": [segment_report_json(segment) for segment in prompt.segments],
        "messages": dataclass_json(prompt.messages),
        "tools": [tool._asdict() for tool in prompt.tools],
    }


def segment_report_json(segment: Any) -> dict[str, Any]:
    report = {"section": segment.section, "characters": len(segment.text), "volatility": segment.volatility}
    return report | {"origin": dataclass_json(segment.origin), "slot": segment.slot}


def format_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2, default=dict)


def exit_with_error(message: str) -> NoReturn:
    """Exit with code 2 and one line on standard error."""
    raise CommandError(message, returncode=2)
