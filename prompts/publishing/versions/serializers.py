"""JSON and schemas of versions, labels and causes for the REST API and downloads."""

from collections.abc import Mapping
from typing import Any

from personas.api.responses import datetime_json
from personas.api.schema import (
    Schema,
    array_schema,
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from prompts.assembly.json_codec import dataclass_json
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.publishing.provenance.omissions import omissions_json
from prompts.publishing.versions.selectors import (
    get_build_report,
    get_lockfile_parts,
    get_segments,
    get_tool_definitions,
)

TEXT_SCHEMA: Schema = {"type": "string"}
VERSION_REF_SCHEMA = object_schema(
    {"version": integer_schema(1), "digest": digest_schema()}, title="VersionReference"
)
LABEL_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "version": integer_schema(1),
        "digest": digest_schema(),
        "moved_at": datetime_schema(),
    },
    title="LabelPosition",
)
SKILL_ORIGIN_SCHEMA = object_schema(
    {
        "kind": enum_schema(
            ["skill", "context_file"],
            description="Whether it is a skill record or a discovered skill.",
            title="SkillFileOriginKind",
        ),
        "id": integer_schema(1),
        "revision": integer_schema(1),
    },
    title="SkillFileOrigin",
)
OFFERED_SKILL_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "digest": digest_schema(description="Salted digest of the SKILL.md. It changes with its text."),
        "size": integer_schema(description="Size of the SKILL.md in bytes."),
        "origin": SKILL_ORIGIN_SCHEMA,
    },
    title="OfferedSkill",
)
CAUSE_SCHEMA = object_schema(
    {
        "kind": TEXT_SCHEMA,
        "id": nullable_schema(integer_schema()),
        "revision": nullable_schema(integer_schema()),
        "author": TEXT_SCHEMA,
        "message": TEXT_SCHEMA,
    },
    description="What changed: a record at a revision, or another reason for the build.",
    title="VersionCause",
)
# Fields that are null in responses to bot keys.
REASON_FIELDS: dict[str, Schema] = {
    "author": nullable_schema(TEXT_SCHEMA),
    "message": nullable_schema(TEXT_SCHEMA),
    "causes": nullable_schema(array_schema(CAUSE_SCHEMA, most=20)),
}
USAGE_FIELDS: dict[str, Schema] = {
    "agent": TEXT_SCHEMA,
    "channel": TEXT_SCHEMA,
    "version": integer_schema(1),
    **REASON_FIELDS,
    "created_at": datetime_schema(),
    "compiler": TEXT_SCHEMA,
    "hash": digest_schema(),
    "previous_hash": {"type": "string", "description": "Hash of the previous version. Empty for the first."},
}
USAGE_SCHEMA = object_schema(USAGE_FIELDS, description="A version with this digest.", title="VersionUsage")


def version_ref_json(version: PromptVersion) -> dict[str, Any]:
    return {"version": version.number, "digest": version.digest}


def offered_skill_json(file: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": file["name"],
        "digest": file["content"],
        "size": file["size"],
        "origin": skill_file_origin_json(file),
    }


def skill_file_origin_json(file: Mapping[str, Any]) -> dict[str, Any]:
    origin = file["origin"]
    return {"kind": origin["kind"], "id": int(origin["id"]), "revision": origin["revision"]}


def label_json(label: PromptLabel) -> dict[str, Any]:
    return {"name": label.name, **version_ref_json(label.version), "moved_at": datetime_json(label.moved_at)}


def version_usage_json(version: PromptVersion, prompt: AgentPrompt) -> dict[str, Any]:
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "version": version.number,
        "author": version.author_label,
        "message": version.message,
        "created_at": datetime_json(version.created_at),
        "compiler": version.compiler,
        "causes": [cause_json(cause) for cause in version.causes],
        "hash": version.hash,
        "previous_hash": version.previous_hash,
    }


def cause_json(cause: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": str(cause.get("kind", "")),
        "id": cause.get("id"),
        "revision": cause.get("revision"),
        "author": str(cause.get("by", "")),
        "message": str(cause.get("message", "")),
    }


def report_json(version: PromptVersion) -> dict[str, Any]:
    report = get_build_report(version)
    return {**report, "omitted": omissions_json(report["omitted"])} if report else report


def version_json(version: PromptVersion) -> dict[str, Any]:
    prompt = version.prompt
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "version": version.number,
        "digest": version.digest,
        "layout": version.layout,
        "compiler": version.compiler,
        "characters": version.characters,
        "tokens": version.tokens,
        "text_tokens": version.text_tokens,
        "tool_tokens": version.tool_tokens,
        "sizes": {
            name: {"characters": characters, "tokens": tokens}
            for name, (characters, tokens) in version.sizes.items()
        },
        "tools": get_tool_definitions(version),
        "segments": [dataclass_json(segment) for segment in get_segments(version)],
        "report": report_json(version),
        "lockfile": {
            "layout": version.layout,
            "compiler": version.compiler,
            **version.lockfile,
            "parts": get_lockfile_parts(version),
            "skill_files": version.skill_files,
        },
        "causes": version.causes,
        "author": version.author_label,
        "message": version.message,
        "created_at": version.created_at.isoformat(),
        "previous_hash": version.previous_hash,
        "hash": version.hash,
    }
