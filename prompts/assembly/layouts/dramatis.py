"""Dramatis, our own: everything the five can say, slow facts first, so that caches keep long prefixes."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import sections, tool_guidance
from prompts.assembly.budget import cut_elements, cut_entries
from prompts.assembly.data_inventory import data_problems, inventory
from prompts.assembly.file_sections import cut_files, name_of, own_files, speaking
from prompts.assembly.frames import heading, tag
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part, call_part
from prompts.assembly.layouts.dramatis_slots import BACKGROUND, ERROR, NOW, PLANNING, SAID, TASK
from prompts.assembly.layouts.nova import directories, responsibilities, storage
from prompts.assembly.layouts.pi import documentation
from prompts.assembly.placeholders import expanded, unfilled
from prompts.assembly.sections import NOTHING_TO_SAY
from prompts.assembly.segments import CHANNEL, REFRESH, SESSION, TURN, USER, Piece, Pieces
from prompts.assembly.text import on_one_line
from prompts.assembly.texts import dramatis as words
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.tool_lines import tool_part
from prompts.assembly.tool_rules import DRAMATIS_RULES, Guidelines

GUIDELINES = Guidelines(DRAMATIS_RULES)
IDENTITY = ("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text")
USER_FIELDS = ("user.name", "user.timezone", "user.location", "user.notes")


def told(name: str) -> Any:
    """A section that is one text of the inputs, as it is."""

    def section(inputs: PromptInputs) -> Pieces:
        held = getattr(inputs, name)
        return [Piece(held.text, held.origin)] if held is not None and held.text else NOTHING_TO_SAY

    return section


def soul(inputs: PromptInputs) -> Pieces:
    """Absent or empty gives way to the built-in."""
    if inputs.soul is None or not inputs.soul.text.strip():
        return [Piece(DEFAULT_SOUL)]
    return [Piece(inputs.soul.text, inputs.soul.origin)]


def mission(inputs: PromptInputs) -> Pieces:
    if inputs.mission is None or not inputs.mission.text.strip():
        return NOTHING_TO_SAY
    return expanded(inputs.mission, inputs.data, "mission")


def planning_tools(inputs: PromptInputs) -> Pieces:
    tools = [tool for tool in inputs.tools if tool.use == "planning"]
    return tool_guidance.tool_schemas(tools, native=True)


def skills(inputs: PromptInputs) -> Pieces:
    """A menu of those a model may use by itself, each with the place it can be read at."""
    return sections.unled(
        [
            (
                f"\n- **{on_one_line(skill.name)}**: {on_one_line(skill.description)}{place(skill.location)}",
                skill.origin,
            )
            for skill in inputs.skills
            if not skill.disable_model_invocation
        ]
    )


def place(location: str) -> str:
    return f" ({on_one_line(location)})" if location else ""


def context_files(inputs: PromptInputs) -> Pieces:
    """Project files outermost first, then those of the workspace, within one allowance."""
    found, own = speaking(inputs.context_files), own_files(inputs.workspace_files)
    fitting = sections.fitted([*found, *own], inputs.limits.per_file, inputs.limits.all_files)
    made = [
        sections.element("context", text, sections.file_origin(file), source=file.path)
        if at < len(found)
        else sections.element("workspace-file", text, sections.file_origin(file), source=name_of(file))
        for at, (file, text) in enumerate(fitting)
    ]
    return sections.listed(made, "\n\n")


def user(inputs: PromptInputs) -> Pieces:
    """What is known about the person, then the notes."""
    if inputs.user is None:
        return NOTHING_TO_SAY
    held = inputs.user
    facts = (("Name", held.name), ("Timezone", held.timezone), ("Location", held.location))
    lines = "\n".join([f"{label}: {on_one_line(value)}" for label, value in facts if value])
    whole = f"{lines}\n\n{held.notes}" if lines and held.notes else lines or held.notes
    return [Piece(whole, held.origin)] if whole else NOTHING_TO_SAY


def problems(inputs: PromptInputs) -> list[str]:
    said = [*cut_files(inputs, inputs.workspace_files), *data_problems(inputs)]
    return said if inputs.mission is None else [*said, *unfilled(inputs.mission, inputs.data, "mission")]


def for_top_level(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Planning is for whoever has the session."""
    return None if inputs.is_sub_agent else {}


SKILLS, PLANNING_TOOLS = tag("skills"), tag("planning-tools")
CUTTABLE: dict[str, Any] = {"is_cuttable": True, "shorten": cut_entries}

DRAMATIS = Layout(
    name="dramatis",
    summary="Everything the other five can say, slow facts first, with cache boundaries in between.",
    slots=(
        *("now", "timezone", "zone", "host", "sandbox", "session", "task", "is_background"),
        *("previous_error", "tools", "append"),
    ),
    problems=problems,
    parts=(
        Part("base", told("base"), tag("base"), uses=("base",)),
        Part("identity", sections.identity, tag("identity"), uses=IDENTITY, needs="no identity"),
        Part("soul", soul, tag("soul"), uses=("soul",)),
        Part("instructions", sections.instructions, tag("instructions"), uses=("instructions",)),
        Part("append", told("append"), tag("further-instructions"), uses=("append",)),
        Part("mission", mission, tag("mission"), uses=("mission",)),
        Part(
            "responsibilities",
            responsibilities,
            tag("Responsibilities"),
            uses=("responsibilities",),
            shorten=cut_entries,
        ),
        tool_part(
            "dramatis.tools",
            tool_guidance.tool_schemas,
            frame=tag("tools"),
            keeps=("description", "snippet", "parameters"),
            needs="no tools",
        ),
        tool_part(
            "dramatis.tool_calling", tool_guidance.calling, frame=tag("tool-calling"), needs="native tools"
        ),
        tool_part(
            "dramatis.tool_guidelines",
            tool_guidance.ruled(GUIDELINES),
            frame=tag("tool-guidelines"),
            keeps=("guidelines",),
            needs="no tool asks for any",
        ),
        Part(
            "planning_tools",
            planning_tools,
            lambda body: PLANNING_TOOLS(heading(words.PLANNING_TOOLS)(body)),
            uses=("planning_tools",),
        ),
        Part("documentation", documentation, tag("documentation"), uses=("documentation",)),
        Part(
            "skills",
            skills,
            lambda body: SKILLS(heading(words.SKILLS)(body)),
            uses=("skills",),
            volatility=REFRESH,
            **CUTTABLE,
        ),
        Part(
            "context_files",
            context_files,
            uses=("context_files", "workspace_files"),
            volatility=REFRESH,
            is_cuttable=True,
            shorten=cut_elements,
        ),
        Part(
            "directories",
            directories,
            tag("directories"),
            uses=("working_directory", "directories"),
            volatility=REFRESH,
        ),
        Part("storage", storage, tag("storage"), uses=("capabilities",), volatility=REFRESH),
        Part(
            "formatting",
            sections.formatting,
            tag("formatting"),
            uses=("channel.formatting",),
            volatility=CHANNEL,
        ),
        Part("user", user, tag("user"), uses=USER_FIELDS, volatility=USER),
        Part("data", inventory, tag("data"), uses=("data",), volatility=USER, **CUTTABLE),
        Part("memories", sections.memories, tag("memories"), uses=("memories",), volatility=USER, **CUTTABLE),
        call_part("now", NOW, TURN),
        call_part("task", TASK, SESSION),
        call_part("background", BACKGROUND, TURN),
        Part(
            "planning",
            lambda _: (Piece("⟦planning⟧"),),
            volatility=SESSION,
            slot=PLANNING,
            given=for_top_level,
            needs="sub-agents do not plan",
        ),
        call_part("previous_error", ERROR, TURN),
        call_part("call", SAID, TURN),
    ),
)
