"""Golden files: the expected text of every example in docs/examples.

Run as a program, it checks all examples and prints the first that differs; with --write, it rewrites the
golden files and the published schemas.
An example is docs/examples/LAYOUT/NAME.json with its slots, if any, in NAME.slots.json.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from prompts.assembly.builder import AssembledPrompt, build_filled_prompt
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.json_schema import build_json_schema
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs" / "examples"
GOLDEN = Path(__file__).parent / "golden"
SCHEMAS: dict[str, type[Any]] = {"inputs": PromptInputs, "slots": Slots}


class Example(NamedTuple):
    """One example: its inputs and slots on disk, and the golden text."""

    layout: str
    name: str
    inputs: Path
    slots: Path
    golden: Path

    def __str__(self) -> str:
        return f"{self.layout}/{self.name}"

    def read(self) -> tuple[PromptInputs, Slots]:
        inputs = parse_dataclass(PromptInputs, json.loads(self.inputs.read_text(encoding="utf-8")))
        slots = json.loads(self.slots.read_text(encoding="utf-8")) if self.slots.exists() else {}
        return inputs, parse_dataclass(Slots, slots)

    def prompt(self) -> AssembledPrompt:
        return build_filled_prompt(LAYOUTS[self.layout], *self.read())


def examples() -> Iterator[Example]:
    for path in sorted(EXAMPLES.glob("*/*.json")):
        if path.name.endswith(".slots.json"):
            continue
        layout, name = path.parent.name, path.stem
        golden = GOLDEN / layout / f"{name}.txt"
        yield Example(layout, name, path, path.with_name(f"{name}.slots.json"), golden)


def write_schemas() -> None:
    """Write the published JSON schemas of inputs and slots."""
    for name, kind in SCHEMAS.items():
        schema = json.dumps(build_json_schema(kind, f"Prompt {name}"), indent=2, ensure_ascii=False)
        (ROOT / "docs" / f"{name}.schema.json").write_text(f"{schema}\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        write_schemas()
    for example in examples():
        text = example.prompt().text
        if "--write" in arguments:
            example.golden.parent.mkdir(parents=True, exist_ok=True)
            example.golden.write_text(text, encoding="utf-8", newline="")
        elif not example.golden.exists() or example.golden.read_bytes() != text.encode():
            print(f"differs: {example}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
