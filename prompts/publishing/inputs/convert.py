"""Convert single records and files to prompt inputs."""

import json
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import quote

from django.conf import settings

from personas.models import Agent, Memory, Tool
from prompts.assembly.inputs import ContextFileInput, Documentation, SkillInput, Text, ToolInput
from prompts.assembly.segments import Origin
from prompts.assembly.text import collapse_whitespace
from skills.agent_context.effective import AgentSkill, EffectiveContext, EffectiveFile
from skills.sources.locations import join_location

BOM = "\ufeff"


def build_record_origin(row: Any) -> Origin:
    return Origin(row.kind, str(row.pk or "new"), row.revision)


def build_file_origin(file: EffectiveFile) -> Origin:
    revision = file.file.active
    return Origin("context_file", str(file.file.pk), revision.number if revision else 0, file.file.path)


def build_text_input(text: str, row: Any) -> Text | None:
    return Text(text, build_record_origin(row)) if text else None


def get_file_text(file: EffectiveFile) -> str:
    """Return the text without a byte order mark, and without the line breaks at its end.

    These line breaks would be blank lines before the next part of a prompt.
    """
    return file.text.removeprefix(BOM).rstrip("\r\n")


def build_file_input(context: EffectiveContext, kind: str) -> Text | None:
    files = context.list_files(kind)
    return Text(get_file_text(files[0]), build_file_origin(files[0])) if files else None


def build_context_file(file: EffectiveFile) -> ContextFileInput:
    path = file.bot_path or file.file.path
    return ContextFileInput(path, get_file_text(file), origin=build_file_origin(file))


class PromptSlugs(NamedTuple):
    """The slugs of the agent and the channel of a prompt."""

    agent: str
    channel: str


def build_skill_input(skill: AgentSkill, context: EffectiveContext, pair: PromptSlugs) -> SkillInput:
    if skill.file is not None:
        origin = build_file_origin(EffectiveFile("skill", skill.file))
        location = skill.bot_path or skill.file.path
    else:
        origin, location = build_record_origin(skill.skill), build_skill_location(skill.name, context, pair)
    return SkillInput(
        skill.name,
        skill.description,
        location,
        disable_model_invocation=skill.disable_model_invocation,
        origin=origin,
    )


def build_skill_location(name: str, context: EffectiveContext, pair: PromptSlugs) -> str:
    """Return where bots read a skill without a file: below the folder of `dramatis pull`, or at its URL.

    The URL names agent and channel, because bots read skills as of the released version of their prompt.
    """
    folder = context.settings.pulled_skills_folder if context.settings else ""
    if folder:
        return join_location(folder, name, "SKILL.md")
    prompt = f"agents/{pair.agent}/channels/{pair.channel}"
    return f"{settings.PUBLIC_URL}/api/v1/{prompt}/skills/{quote(name)}/SKILL.md"


def build_documentation_input(agent: Agent) -> Documentation | None:
    paths = agent.documentation_main, agent.documentation_additional, agent.documentation_examples
    return Documentation(*paths) if any(paths) else None


def describe_withheld_files(context: EffectiveContext) -> list[str]:
    return [f"{file.path}: {file.get_status_display().lower()}." for file in context.withheld]


def describe_context_settings(context: EffectiveContext) -> list[str]:
    """Return a message for settings of the agent that have no effect."""
    problem = context.reader.skill_folders_problem if context.reader else ""
    return [problem] if problem else []


def describe_dropped_skills(context: EffectiveContext) -> list[str]:
    """Return a message for each skill that is not valid by the rules of the agent's harness."""
    return [
        f"The skill “{collapse_whitespace(skill.name)}” is not offered: {' '.join(skill.dropped)}"
        for skill in context.skills
        if skill.dropped
    ]


def build_tool_input(row: Tool, use: str) -> ToolInput:
    return ToolInput(
        row.name,
        row.description,
        row.snippet,
        tuple(row.guideline_lines()),
        json.loads(row.parameters) if row.parameters else None,
        row.signature,
        cast("Literal['active', 'planning']", use),
        build_record_origin(row),
    )


def is_memory_valid(memory: Memory, at: datetime) -> bool:
    has_begun = memory.valid_from is None or memory.valid_from <= at
    return has_begun and (memory.valid_until is None or at < memory.valid_until)
