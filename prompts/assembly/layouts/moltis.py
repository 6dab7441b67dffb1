"""Moltis: twelve components under Markdown headings, three entry points, tools native or spelled out."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import tool_guidance
from prompts.assembly.budget import cut_entries
from prompts.assembly.file_sections import cut_files, project_files, workspace_files
from prompts.assembly.frames import Around, heading
from prompts.assembly.inputs import PromptInputs, UserProfile
from prompts.assembly.layout import Layout, Part, Section, awaited
from prompts.assembly.runtime_lines import runtime_lines
from prompts.assembly.sections import NOTHING_TO_SAY, identity_sentences
from prompts.assembly.segments import REFRESH, SESSION, USER, Piece, Pieces
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import attributes, guarded
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.texts.moltis import EXECUTION_ROUTING
from prompts.assembly.tool_lines import tool_part, tools_of

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
    return awaited("runtime")


def given_runtime(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """What a call's own facts are completed with."""
    if inputs.entry == "simple":
        return None
    given = {"tools": [tool.name for tool in tools_of(inputs)]}
    return given | about_user(inputs.user) if inputs.user else given


def about_user(profile: UserProfile) -> dict[str, Any]:
    return {"timezone": profile.timezone, "location": profile.location}


@slot("moltis.runtime")
def runtime(slots: Slots, given: Mapping[str, Any]) -> str:
    """Host and sandbox, then, for an agent with tools, how `exec` chooses between the two."""
    lines = runtime_lines(slots, given.get("timezone", ""), given.get("location", ""))
    if not lines:
        return ""
    has_tools = any(slots.tools is None or name in slots.tools for name in given["tools"])
    routing = f"\n\n{EXECUTION_ROUTING}" if has_tools else ""
    return "## Runtime\n\n" + "\n".join(lines) + routing


def skills(inputs: PromptInputs) -> Pieces:
    """Those that a model may use on its own, as they were registered."""
    held = [skill for skill in inputs.skills if not skill.disable_model_invocation]
    names = attributes([skill.name for skill in held])
    sources = attributes([skill.source for skill in held])
    paths = attributes([skill.location for skill in held])
    fields = zip(names, sources, paths, held, strict=True)
    return [
        (skill_element(name, source, path, skill.description), skill.origin)
        for name, source, path, skill in fields
    ]


def skill_element(name: str, source: str, path: str, description: str) -> str:
    place = f' path="{path}"' if path else ""
    body = guarded(description, "skill", "available_skills")
    return f'\n<skill name="{name}" source="{source}"{place}>\n{body}\n</skill>'


def problems(inputs: PromptInputs) -> list[str]:
    """What was left out although there is a place for it."""
    if inputs.entry == "simple":
        return cut_files(inputs)
    said = cut_files(inputs, inputs.workspace_files)
    if inputs.soul is not None and inputs.soul.text and inputs.identity is None:
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
        tool_part("moltis.introduction", tool_guidance.introduction),
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
            # Each element guards its own body, and a look at the finished ones would cost as much again.
            Around("## Available Skills\n<available_skills>", "\n</available_skills>"),
            uses=("skills",),
            volatility=REFRESH,
            needs="no skills, or not the full entry point",
            shorten=cut_entries,
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
            tool_guidance.memory_hint,
            frame=heading("## Long-Term Memory"),
            needs="no memory tools",
        ),
        tool_part(
            "moltis.tool_schemas",
            tool_guidance.tool_schemas,
            frame=heading("## Available Tools"),
            keeps=("description", "snippet", "parameters"),
            needs="no tools",
        ),
        tool_part(
            "moltis.tool_calling",
            tool_guidance.calling,
            frame=heading("## How to call tools"),
            needs="no tools, or a provider that takes their definitions",
        ),
        tool_part(
            "moltis.guidelines",
            tool_guidance.guidelines,
            frame=heading("## Guidelines"),
            keeps=("guidelines",),
        ),
    ),
)
