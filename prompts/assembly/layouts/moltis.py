"""Moltis: twelve components under Markdown headings, three entry points, tools native or spelled out."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly.file_sections import cut_files, project_files, workspace_files
from prompts.assembly.frames import heading, tag
from prompts.assembly.inputs import PromptInputs, Tool
from prompts.assembly.layout import Layout, Part, Section
from prompts.assembly.pieces import REFRESH, SESSION, USER, Piece
from prompts.assembly.rules import matching
from prompts.assembly.runtime_lines import runtime_lines
from prompts.assembly.sections import NOTHING_TO_SAY, Pieces, identity_sentences, listed
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import attribute, bullet, guarded
from prompts.assembly.tool_parts import called, tool_part, tools_of
from prompts.assembly.tool_schemas import compact, whole
from prompts.assembly.words.moltis import (
    CALLING,
    EXECUTION_ROUTING,
    GENERAL_RULES,
    MEMORY_RULES,
    SILENT_REPLIES,
    TOOL_RULES,
)
from prompts.assembly.words.soul import DEFAULT_SOUL

WITH_TOOLS = "You are a helpful assistant with access to tools for executing shell commands."
WITHOUT_TOOLS = "You are a helpful assistant. Answer questions clearly and concisely."

PERSONA = (
    *(f"identity.{field}" for field in ("name", "emoji", "creature", "vibe")),
    "soul",
    *(f"user.{field}" for field in ("name", "timezone", "location")),
)
# What each entry point has no place for; the simple one knows tools and project context only.
LEFT_OUT = {
    "full": (),
    "simple": (*PERSONA, "skills", "workspace_files"),
    "minimal": ("tools", "skills"),
}


def in_entries(section: Section, *entries: str) -> Section:
    """The section at these entry points, and nothing at the others."""
    return lambda inputs: section(inputs) if inputs.entry in entries else NOTHING_TO_SAY


def introduction(tools: Sequence[Tool], _: bool) -> Pieces:
    return [Piece(WITH_TOOLS if tools else WITHOUT_TOOLS)]


def identity(inputs: PromptInputs) -> Pieces:
    said = identity_sentences(inputs.identity) if inputs.identity else ""
    return [Piece(said, inputs.identity.origin)] if inputs.identity and said else NOTHING_TO_SAY


def soul(inputs: PromptInputs) -> Pieces:
    """Always beside an identity, never without one; absent or empty gives way to the built-in."""
    if inputs.identity is None:
        return NOTHING_TO_SAY
    if inputs.soul is None or not inputs.soul.text.strip():
        return [Piece(DEFAULT_SOUL)]
    return [Piece(inputs.soul.text, inputs.soul.origin)]


def user(inputs: PromptInputs) -> Pieces:
    if inputs.user is None or not inputs.user.name:
        return NOTHING_TO_SAY
    return [Piece(f"The user's name is {inputs.user.name}.", inputs.user.origin)]


def awaited_runtime(_: PromptInputs) -> Pieces:
    return [Piece("⟦runtime⟧")]


def given_runtime(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """What a call's own facts are completed with."""
    if inputs.entry == "simple":
        return None
    tools = {tool.name: {} for tool in tools_of(inputs)}
    if inputs.user is None:
        return {"tools": tools}
    return {"tools": tools, "timezone": inputs.user.timezone, "location": inputs.user.location}


@slot("moltis.runtime")
def runtime(slots: Slots, given: Mapping[str, Any]) -> str:
    """Host and sandbox, then, for an agent with tools, how `exec` chooses between the two."""
    lines = runtime_lines(slots, given.get("timezone", ""), given.get("location", ""))
    if not lines:
        return ""
    tools = given["tools"] if slots.tools is None else called(slots.tools, given["tools"])
    routing = f"\n\n{EXECUTION_ROUTING}" if tools else ""
    return "## Runtime\n\n" + "\n".join(lines) + routing


def skills(inputs: PromptInputs) -> Pieces:
    """Name, source and path as attributes, the description as body; not those kept from the model."""
    return listed(
        [
            Piece(
                f'<skill name="{attribute(skill.name)}" source="{attribute(skill.source)}" '
                f'path="{attribute(skill.location)}">\n{guarded(skill.description, "skill")}\n</skill>',
                skill.origin,
            )
            for skill in inputs.skills
            if not skill.disable_model_invocation
        ]
    )


def skills_frame(body: Pieces) -> Pieces:
    return heading("## Available Skills", gap="\n")(tag("available_skills")(body))


def memory_hint(tools: Sequence[Tool], _: bool) -> Pieces:
    """Only for agents that can reach their memory."""
    names = {tool.name for tool in tools if tool.name.startswith("memory")}
    return [Piece(" ".join(matching(MEMORY_RULES, names)))] if names else NOTHING_TO_SAY


def tool_schemas(tools: Sequence[Tool], native: bool) -> Pieces:
    """A line each where the provider takes definitions; whole schemas where it does not."""
    described, gap = (compact, "\n") if native else (whole, "\n\n")
    return listed([Piece(described(tool), tool.origin) for tool in tools], gap)


def calling(tools: Sequence[Tool], native: bool) -> Pieces:
    return [Piece(CALLING)] if tools and not native else NOTHING_TO_SAY


def guidelines(tools: Sequence[Tool], _: bool) -> Pieces:
    """How to use the tools, what each asks for itself, and when to stay silent."""
    if not tools:
        return [Piece("\n".join([bullet(line) for line in GENERAL_RULES]))]
    told = dict.fromkeys(matching(TOOL_RULES, {tool.name for tool in tools}))
    ours = "\n".join([bullet(line) for line in told])
    own = {line: tool.origin for tool in reversed(tools) for line in tool.guidelines if line not in told}
    asked = {line: own[line] for tool in tools for line in tool.guidelines if line in own}
    lines = [Piece(f"\n{bullet(line)}", origin) for line, origin in asked.items()]
    return [Piece(ours), *lines, Piece(f"\n\n## Silent Replies\n\n{SILENT_REPLIES}")]


def problems(inputs: PromptInputs) -> list[str]:
    """What was left out although there is a place for it."""
    said = cut_files(inputs, () if inputs.entry == "simple" else inputs.workspace_files)
    if inputs.soul is not None and inputs.identity is None:
        said.append("The soul is left out: this layout gives one only beside an identity.")
    return said


def displaced(inputs: PromptInputs) -> tuple[str, ...]:
    """What this entry point has no place for, and a soul without an identity."""
    left_out: tuple[str, ...] = LEFT_OUT[inputs.entry]
    return left_out if inputs.identity else (*left_out, "soul")


MOLTIS = Layout(
    name="moltis",
    summary="Twelve components; full, simple and minimal entry points; native or fallback tools.",
    slots=("host", "sandbox", "session", "tools"),
    problems=problems,
    displaced=displaced,
    parts=(
        tool_part("moltis.introduction", introduction),
        Part(
            "identity",
            in_entries(identity, "full", "minimal"),
            uses=("identity.name", "identity.emoji", "identity.creature", "identity.vibe"),
            needs="no identity with a sentence to say, or the simple entry point",
        ),
        Part(
            "soul",
            in_entries(soul, "full", "minimal"),
            heading("## Soul"),
            uses=("soul",),
            needs="no identity, or the simple entry point",
        ),
        Part(
            "user",
            in_entries(user, "full", "minimal"),
            uses=("user.name",),
            volatility=USER,
            needs="no user's name, or the simple entry point",
        ),
        Part(
            "project_context",
            project_files,
            heading("## Project Context"),
            uses=("context_files",),
            volatility=REFRESH,
            needs="no context files",
            is_cuttable=True,
        ),
        Part(
            "runtime",
            awaited_runtime,
            uses=("user.timezone", "user.location"),
            volatility=SESSION,
            needs="the simple entry point",
            slot="moltis.runtime",
            given=given_runtime,
        ),
        Part(
            "skills",
            in_entries(skills, "full"),
            skills_frame,
            uses=("skills",),
            volatility=REFRESH,
            needs="no skills, or not the full entry point",
        ),
        Part(
            "workspace_files",
            in_entries(workspace_files, "full", "minimal"),
            heading("## Workspace Files"),
            uses=("workspace_files",),
            volatility=REFRESH,
            needs="no workspace files, or the simple entry point",
            is_cuttable=True,
        ),
        tool_part(
            "moltis.memory_hint",
            memory_hint,
            frame=heading("## Long-Term Memory"),
            needs="no memory tools",
        ),
        tool_part(
            "moltis.tool_schemas",
            tool_schemas,
            frame=heading("## Available Tools"),
            keeps=("description", "snippet", "parameters"),
            needs="no tools",
        ),
        tool_part(
            "moltis.tool_calling",
            calling,
            frame=heading("## How to call tools"),
            needs="no tools, or a provider that takes their definitions",
        ),
        tool_part(
            "moltis.guidelines",
            guidelines,
            frame=heading("## Guidelines"),
            keeps=("guidelines",),
        ),
    ),
)
