"""One record or file at a time, as the assembly takes it."""

import json
from datetime import datetime
from typing import Any, Literal, cast

from personas import models as records
from prompts.assembly import inputs as told
from prompts.assembly.segments import Origin
from skills.agent_context.effective import FileInUse, Given, SkillInUse

BOM = "\ufeff"


def origin_of(row: Any) -> Origin:
    return Origin(row.kind, str(row.pk or "new"), row.revision)


def origin_of_file(one: FileInUse) -> Origin:
    revision = one.file.in_force
    return Origin("context_file", str(one.file.pk), revision.number if revision else 0, one.file.path)


def text_of(text: str, row: Any) -> told.Text | None:
    return told.Text(text, origin_of(row)) if text else None


def words_in(one: FileInUse) -> str:
    return one.text.removeprefix(BOM)


def file_text(given: Given, kind: str) -> told.Text | None:
    found = given.of_kind(kind)
    return told.Text(words_in(found[0]), origin_of_file(found[0])) if found else None


def context_file(one: FileInUse) -> told.ContextFile:
    return told.ContextFile(one.file.path, words_in(one), origin=origin_of_file(one))


def skill_input(one: SkillInUse) -> told.Skill:
    if one.file is not None:
        origin = origin_of_file(FileInUse("skill", one.file))
        location = one.file.path
    else:
        origin, location = origin_of(one.skill), f"dramatis:skills/{one.name}"
    return told.Skill(
        one.name,
        one.description,
        location,
        disable_model_invocation=one.disable_model_invocation,
        origin=origin,
    )


def tool_input(row: records.Tool, use: str) -> told.Tool:
    return told.Tool(
        row.name,
        row.description,
        row.snippet,
        tuple(row.guideline_lines()),
        json.loads(row.parameters) if row.parameters else None,
        row.signature,
        cast("Literal['active', 'planning']", use),
        origin_of(row),
    )


def holds(memory: records.Memory, at: datetime) -> bool:
    begun = memory.valid_from is None or memory.valid_from <= at
    return begun and (memory.valid_until is None or at < memory.valid_until)
