"""One record or file at a time, as the assembly takes it."""

import json
from datetime import datetime
from typing import Any, Literal, cast

from personas import models as records
from prompts.assembly import inputs as told
from prompts.assembly.segments import Origin
from skills.agent_context.effective import AgentSkill, EffectiveContext, EffectiveFile

BOM = "\ufeff"


def build_record_origin(row: Any) -> Origin:
    return Origin(row.kind, str(row.pk or "new"), row.revision)


def build_file_origin(one: EffectiveFile) -> Origin:
    revision = one.file.in_force
    return Origin("context_file", str(one.file.pk), revision.number if revision else 0, one.file.path)


def build_text_input(text: str, row: Any) -> told.Text | None:
    return told.Text(text, build_record_origin(row)) if text else None


def get_file_text(one: EffectiveFile) -> str:
    return one.text.removeprefix(BOM)


def build_file_input(given: EffectiveContext, kind: str) -> told.Text | None:
    found = given.of_kind(kind)
    return told.Text(get_file_text(found[0]), build_file_origin(found[0])) if found else None


def build_context_file(one: EffectiveFile) -> told.ContextFile:
    return told.ContextFile(one.file.path, get_file_text(one), origin=build_file_origin(one))


def build_skill_input(one: AgentSkill) -> told.Skill:
    if one.file is not None:
        origin = build_file_origin(EffectiveFile("skill", one.file))
        location = one.file.path
    else:
        origin, location = build_record_origin(one.skill), f"dramatis:skills/{one.name}"
    return told.Skill(
        one.name,
        one.description,
        location,
        disable_model_invocation=one.disable_model_invocation,
        origin=origin,
    )


def build_tool_input(row: records.Tool, use: str) -> told.Tool:
    return told.Tool(
        row.name,
        row.description,
        row.snippet,
        tuple(row.guideline_lines()),
        json.loads(row.parameters) if row.parameters else None,
        row.signature,
        cast("Literal['active', 'planning']", use),
        build_record_origin(row),
    )


def is_memory_valid(memory: records.Memory, at: datetime) -> bool:
    begun = memory.valid_from is None or memory.valid_from <= at
    return begun and (memory.valid_until is None or at < memory.valid_until)
