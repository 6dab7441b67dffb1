"""Compile the collected inputs of a prompt into a build result. Nothing is written to the database.

The result holds text, sizes, report, and digests of everything but the parts that determines the text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from personas.contents.services import SaltedDigest
from personas.models import sha256_digest
from prompts.assembly.builder import AssembledPrompt, build_prompt
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import dataclass_json
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import Origin
from prompts.assembly.sizes import measure_sections
from prompts.assembly.tool_definitions import ToolDefinition
from prompts.proof.canonical import canonical_json
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.inputs import CollectedInputs
from prompts.publishing.versions.segments import PackedPrompt, encode_json, pack_prompt
from prompts.publishing.versions.stored_inputs import (
    PackedInputs,
    PartEncoder,
    encode_input_parts,
    pack_inputs,
)
from prompts.publishing.versions.tool_definitions import count_definition_tokens, list_definitions_json

ASSEMBLY_DIR = Path(__file__).parents[2] / "assembly"


class NotBuildable(Exception):
    """The inputs cannot be assembled; the message is shown to users."""


@dataclass(frozen=True)
class BuildResult:
    """A compiled prompt, to be compared with the latest version and stored if it differs."""

    collected: CollectedInputs
    prompt: AssembledPrompt
    packed: PackedPrompt
    sizes: dict[str, list[int]]
    # Tokens of the text and of the tool definitions.
    text_tokens: int
    tool_tokens: int
    # What determines the text besides the inputs: layout name, digests of the compiler and of the settings.
    pins: dict[str, str]
    encoder: PartEncoder

    @cached_property
    def erasable_contents(self) -> dict[str, bytes]:
        """All contents that may be erased, by plain SHA-256: segments, tools, report and parts."""
        return self.packed.contents | encode_input_parts(self.collected.inputs, self.encoder)

    def pack_inputs(self, salted: Mapping[str, SaltedDigest]) -> PackedInputs:
        return pack_inputs(self.collected.inputs, self.encoder, salted)

    def get_part_digests(self, salted: Mapping[str, SaltedDigest]) -> dict[str, str]:
        return get_part_digests(self.collected.inputs, self.encoder, salted)

    @property
    def tokens(self) -> int:
        return self.text_tokens + self.tool_tokens


def assemble_prompt(collected: CollectedInputs) -> AssembledPrompt:
    layout = LAYOUTS.get(collected.layout)
    if layout is None:
        raise NotBuildable(
            f"The layout “{collected.layout}” no longer exists. Choose another layout for this agent."
        )
    try:
        return build_prompt(layout, collected.inputs)
    except AssemblyError as error:
        raise NotBuildable(str(error)) from error


def compile_prompt(collected: CollectedInputs, encoder: PartEncoder | None = None) -> BuildResult:
    """Assemble the prompt, count its tokens and compute its digests.

    `encoder` is shared by the prompts of a batch, because they have parts in common.
    """
    encoder = encoder or PartEncoder()
    prompt = assemble_prompt(collected)
    sizes = measure_sections(prompt.segments, count_tokens_cached)
    report = encode_json(build_prompt_report(prompt, collected.problems))
    return BuildResult(
        collected,
        prompt,
        pack_prompt(prompt, report, collected.skill_files),
        sizes,
        sum(tokens for _, tokens in sizes.values()),
        count_tool_tokens(prompt.tools),
        build_pins(collected),
        encoder,
    )


def count_tool_tokens(tools: Iterable[ToolDefinition]) -> int:
    return count_definition_tokens(list_definitions_json(tools), count_tokens_cached)


def build_prompt_report(prompt: AssembledPrompt, problems: Sequence[str]) -> dict[str, Any]:
    """Return the build report, which is stored with the version.

    It lists truncated parts, omitted parts with reasons, problems, and records without a place in the layout.
    """
    parts, report = prompt.report.parts, prompt.report
    return {
        "cut": {part.name: part.cut for part in parts if part.cut},
        "omitted": {part.name: part.omitted for part in parts if part.omitted},
        "problems": [*report.problems, *problems],
        # Problems with files and skills that were withheld. They can change without changing the text.
        "withheld": list(problems),
        "lost": list(report.lost),
    }


def build_pins(collected: CollectedInputs) -> dict[str, str]:
    inputs = collected.inputs
    plain = {
        "agent": inputs.agent,
        "native_tools": inputs.native_tools,
        "working_directory": inputs.working_directory,
        "mode": inputs.mode,
        "entry": inputs.entry,
        "is_sub_agent": inputs.is_sub_agent,
        "directories": list(inputs.directories),
        "capabilities": None if inputs.capabilities is None else list(inputs.capabilities),
        "documentation": dataclass_json(inputs.documentation),
        "limits": dataclass_json(inputs.limits),
        **({"home": inputs.home} if inputs.home else {}),
    }
    return {
        "layout": collected.layout,
        "compiler": get_compiler_digest(),
        "settings": sha256_digest(canonical_json(plain)),
    }


def get_part_digests(
    inputs: PromptInputs, encoder: PartEncoder, salted: Mapping[str, SaltedDigest]
) -> dict[str, str]:
    """Return the content digest of every record and file in the inputs, keyed `kind:id@revision`.

    `salted` has these digests by the plain SHA-256 of the contents.
    """
    parts: dict[str, str] = {}
    for part in iterate_input_parts(inputs):
        origin: Origin = part.origin
        key = f"{origin.kind}:{origin.id}@{origin.revision}"
        digest = salted[encoder.encode(part).digest].digest
        # Prompt settings may be the origin of two parts, the mission and the data: hash both digests.
        parts[key] = sha256_digest(f"{parts[key]}{digest}".encode()) if key in parts else digest
    return parts


def iterate_input_parts(inputs: PromptInputs) -> Iterator[Any]:
    for field in fields(inputs):
        value = getattr(inputs, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            origin = getattr(part, "origin", None)
            if isinstance(origin, Origin) and origin.id:
                yield part


@cache
def get_compiler_digest() -> str:
    """Return a hash of the source code of prompts.assembly: a changed assembly may produce another text."""
    digest = sha256()
    for path in sorted(ASSEMBLY_DIR.rglob("*.py")):
        digest.update(path.relative_to(ASSEMBLY_DIR).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]
