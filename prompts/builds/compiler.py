"""Gathered inputs → a prompt with all that a version says of it; nothing is written here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from personas.models import sha256_digest
from prompts.assembly.builder import AssembledPrompt, build_prompt
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import dataclass_json
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import Origin
from prompts.assembly.sizes import get_texts_by_section
from prompts.builds.tokens import count_tokens
from prompts.inputs import CollectedInputs
from prompts.proof.canonical import canonical_json
from prompts.versions.segments import StoredSegments, encode_json, pack_prompt

ASSEMBLY_DIR = Path(__file__).parent.parent / "assembly"
count_tokens_cached = lru_cache(maxsize=20_000)(count_tokens)


# By identity, with the part itself so that no other can take its place while the batch lasts.
DigestCache = dict[int, tuple[Any, str]]


class NotBuildable(Exception):
    """The inputs give no prompt; the message is for people."""


@dataclass(frozen=True)
class BuildResult:
    """A build, ready to be compared and stored."""

    gathered: CollectedInputs
    prompt: AssembledPrompt
    packed: StoredSegments
    sizes: dict[str, list[int]]
    tokens: int
    # The digest of every part, and of all else that the text depends on.
    parts: dict[str, str]
    pins: dict[str, str]


def assemble_prompt(gathered: CollectedInputs) -> AssembledPrompt:
    layout = LAYOUTS.get(gathered.layout)
    if layout is None:
        raise NotBuildable(f"There is no layout “{gathered.layout}” any more. Choose another for this agent.")
    try:
        return build_prompt(layout, gathered.inputs)
    except AssemblyError as error:
        raise NotBuildable(str(error)) from error


def compile_prompt(gathered: CollectedInputs, digests: DigestCache | None = None) -> BuildResult:
    """Assemble, measure and pin; digests are shared by the prompts of a batch, for so are their parts."""
    prompt = assemble_prompt(gathered)
    texts = get_texts_by_section(prompt.segments)
    sizes = {section: [len(text), count_tokens_cached(text)] for section, text in texts.items()}
    report = encode_json(build_prompt_report(prompt, gathered.problems))
    return BuildResult(
        gathered,
        prompt,
        pack_prompt(prompt, report),
        sizes,
        sum(tokens for _, tokens in sizes.values()),
        get_part_digests(gathered.inputs, {} if digests is None else digests),
        build_pins(gathered),
    )


def build_prompt_report(prompt: AssembledPrompt, more: Sequence[str]) -> dict[str, Any]:
    """What the segments cannot tell: what was cut or left out and why, problems, records without a place."""
    parts, told = prompt.report.parts, prompt.report
    return {
        "cut": {part.name: part.cut for part in parts if part.cut},
        "omitted": {part.name: part.omitted for part in parts if part.omitted},
        "problems": [*told.problems, *more],
        "lost": list(told.lost),
    }


def build_pins(gathered: CollectedInputs) -> dict[str, str]:
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
        "limits": dataclass_json(inputs.limits),
    }
    return {
        "layout": gathered.layout,
        "compiler": get_compiler_digest(),
        "settings": sha256_digest(canonical_json(plain)),
    }


def get_part_digests(inputs: PromptInputs, digests: DigestCache) -> dict[str, str]:
    """Every record and file among the inputs by kind, id and revision, with the digest of what it says."""
    found: dict[str, str] = {}
    for part in iterate_input_parts(inputs):
        origin: Origin = part.origin
        if id(part) not in digests:
            digests[id(part)] = (part, sha256_digest(encode_json(dataclass_json(part))))
        found[f"{origin.kind}:{origin.id}@{origin.revision}"] = digests[id(part)][1]
    return found


def iterate_input_parts(inputs: PromptInputs) -> Iterator[Any]:
    for each in fields(inputs):
        value = getattr(inputs, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            origin = getattr(part, "origin", None)
            if isinstance(origin, Origin) and origin.id:
                yield part


@cache
def get_compiler_digest() -> str:
    """The digest of the assembly's own code: what else could change the text."""
    whole = sha256()
    for path in sorted(ASSEMBLY_DIR.rglob("*.py")):
        whole.update(path.relative_to(ASSEMBLY_DIR).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:20]
