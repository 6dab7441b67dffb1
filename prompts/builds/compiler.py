"""Gathered inputs → a prompt with all that a version says of it; nothing is written here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from personas.models import digest_of
from prompts.assembly.builder import Prompt, build
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import dump
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import Origin
from prompts.assembly.sizes import section_texts
from prompts.builds.tokens import count_tokens
from prompts.inputs import Gathered
from prompts.proof.canonical import canonical
from prompts.versions.segments import Packed, as_json, packed

ASSEMBLY = Path(__file__).parent.parent / "assembly"
tokens_in = lru_cache(maxsize=20_000)(count_tokens)


# By identity, with the part itself so that no other can take its place while the batch lasts.
Digests = dict[int, tuple[Any, str]]


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
    # The digest of every part, and of all else that the text depends on.
    parts: dict[str, str]
    pins: dict[str, str]


def assembled(gathered: Gathered) -> Prompt:
    layout = LAYOUTS.get(gathered.layout)
    if layout is None:
        raise NotBuildable(f"There is no layout “{gathered.layout}” any more. Choose another for this agent.")
    try:
        return build(layout, gathered.inputs)
    except AssemblyError as error:
        raise NotBuildable(str(error)) from error


def compiled(gathered: Gathered, digests: Digests | None = None) -> Compiled:
    """Assemble, measure and pin; digests are shared by the prompts of a batch, for so are their parts."""
    prompt = assembled(gathered)
    texts = section_texts(prompt.segments)
    sizes = {section: [len(text), tokens_in(text)] for section, text in texts.items()}
    report = as_json(report_of(prompt, gathered.problems))
    return Compiled(
        gathered,
        prompt,
        packed(prompt, report),
        sizes,
        sum(tokens for _, tokens in sizes.values()),
        parts_of(gathered.inputs, {} if digests is None else digests),
        pins_of(gathered),
    )


def report_of(prompt: Prompt, more: Sequence[str]) -> dict[str, Any]:
    """What the segments cannot tell: what was cut or left out and why, problems, records without a place."""
    parts, told = prompt.report.parts, prompt.report
    return {
        "cut": {part.name: part.cut for part in parts if part.cut},
        "omitted": {part.name: part.omitted for part in parts if part.omitted},
        "problems": [*told.problems, *more],
        "lost": list(told.lost),
    }


def pins_of(gathered: Gathered) -> dict[str, str]:
    inputs = gathered.inputs
    plain = {
        "agent": inputs.agent,
        "native_tools": inputs.native_tools,
        "working_directory": inputs.working_directory,
        "mode": inputs.mode,
        "entry": inputs.entry,
        "is_sub_agent": inputs.is_sub_agent,
        "directories": list(inputs.directories),
        "capabilities": list(inputs.capabilities),
        "limits": dump(inputs.limits),
    }
    return {"layout": gathered.layout, "compiler": compiler(), "settings": digest_of(canonical(plain))}


def parts_of(inputs: PromptInputs, digests: Digests) -> dict[str, str]:
    """Every record and file among the inputs by kind, id and revision, with the digest of what it says."""
    found: dict[str, str] = {}
    for part in each_part(inputs):
        origin: Origin = part.origin
        if id(part) not in digests:
            digests[id(part)] = (part, digest_of(as_json(dump(part))))
        found[f"{origin.kind}:{origin.id}@{origin.revision}"] = digests[id(part)][1]
    return found


def each_part(inputs: PromptInputs) -> Iterator[Any]:
    for each in fields(inputs):
        value = getattr(inputs, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            origin = getattr(part, "origin", None)
            if isinstance(origin, Origin) and origin.id:
                yield part


@cache
def compiler() -> str:
    """The digest of the assembly's own code: what else could change the text."""
    whole = sha256()
    for path in sorted(ASSEMBLY.rglob("*.py")):
        whole.update(path.relative_to(ASSEMBLY).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:20]
