"""Gathered inputs → a prompt with all that a version says of it; nothing is written here."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from personas.models import digest_of
from prompts.assembly.builder import Prompt, build
from prompts.assembly.codec import dump
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.pieces import Origin
from prompts.assembly.sizes import section_texts
from prompts.gathering import Gathered
from prompts.proof.canonical import canonical
from prompts.storing import Packed, packed
from prompts.tokens import count_tokens

ASSEMBLY = Path(__file__).parent / "assembly"
tokens_in = lru_cache(maxsize=20_000)(count_tokens)


class NotBuildable(Exception):
    """The inputs give no prompt; the message is for people."""


@dataclass(frozen=True)
class Compiled:
    """A build, ready to be compared and stored."""

    gathered: Gathered
    prompt: Prompt
    packed: Packed
    sizes: dict[str, list[int]]
    tokens: int
    lockfile: dict[str, Any]
    problems: tuple[str, ...]

    @property
    def report(self) -> dict[str, Any]:
        said: dict[str, Any] = dump(self.prompt.report)
        said["problems"] = list(self.problems)
        return said


def assembled(gathered: Gathered) -> Prompt:
    layout = LAYOUTS.get(gathered.layout)
    if layout is None:
        raise NotBuildable(f"There is no layout “{gathered.layout}” any more. Choose another for this agent.")
    try:
        return build(layout, gathered.inputs)
    except AssemblyError as error:
        raise NotBuildable(str(error)) from error


def compiled(gathered: Gathered) -> Compiled:
    """Assemble, measure and pin."""
    prompt = assembled(gathered)
    texts = section_texts(prompt.segments)
    sizes = {section: [len(text), tokens_in(text)] for section, text in texts.items()}
    return Compiled(
        gathered,
        prompt,
        packed(prompt),
        sizes,
        sum(tokens for _, tokens in sizes.values()),
        lockfile_of(gathered),
        (*prompt.report.problems, *gathered.problems),
    )


def lockfile_of(gathered: Gathered) -> dict[str, Any]:
    """The digest of everything the text depends on: parts, settings, layout and compiler."""
    parts = list(parts_of(gathered.inputs))
    plain = {
        name: getattr(gathered.inputs, name)
        for name in (
            "native_tools",
            "working_directory",
            "mode",
            "entry",
            "is_sub_agent",
            "directories",
            "capabilities",
        )
    }
    limits = dump(gathered.inputs.limits)
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
    return {
        "layout": gathered.layout,
        "compiler": compiler(),
        "settings": digest_of(canonical(settings | {"limits": limits, "agent": gathered.inputs.agent})),
        "parts": parts,
    }


def parts_of(inputs: PromptInputs) -> Iterator[dict[str, Any]]:
    """Every record and file among the inputs, in the order they go in."""
    for each in fields(inputs):
        value = getattr(inputs, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            if (
                is_dataclass(part)
                and isinstance(origin := getattr(part, "origin", None), Origin)
                and origin.id
            ):
                yield {name: said for name, said in origin._asdict().items() if said} | {
                    "digest": part_digest(part)
                }


def part_digest(part: Any) -> str:
    """Parts are shared by many prompts of a batch; each is digested once per process."""
    try:
        return _known_digest(part)
    except TypeError:
        return _digest(part)


@lru_cache(maxsize=20_000)
def _known_digest(part: Any) -> str:
    return _digest(part)


def _digest(part: Any) -> str:
    return digest_of(repr(dump(part)).encode())


@cache
def compiler() -> str:
    """The digest of the assembly's own code: what else could change the text."""
    whole = sha256()
    for path in sorted(ASSEMBLY.rglob("*.py")):
        whole.update(path.relative_to(ASSEMBLY).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:20]
