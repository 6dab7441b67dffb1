"""Parse a request body into a draft record, validated by the same schemas as a save."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.http import Http404
from jsonschema import Draft202012Validator

from personas.agents.api import AgentResource
from personas.api.exception_handler import list_invalid_fields, validation_problem
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, ProblemError
from personas.api.record_resource import RecordResource
from personas.api.schema import (
    Schema,
    any_object_schema,
    enum_schema,
    integer_schema,
    name_schema,
    object_schema,
)
from personas.api.validation import build_validator, find_schema_errors
from personas.channels.api import ChannelResource
from personas.errors import InvalidInput
from personas.identities.api import IdentityResource
from personas.memories.api import MemoryResource
from personas.models import Record
from personas.souls.api import SoulResource
from personas.tools.api import ToolResource
from personas.user_profiles.api import UserProfileResource
from personas.work.api import ResponsibilityResource
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.preview.drafts import build_new_record, build_valid_draft
from skills.library.api import SkillResource

RESOURCES_BY_KIND: dict[str, RecordResource[Any]] = {
    resource.model.kind: resource
    for resource in (
        AgentResource(),
        ChannelResource(),
        IdentityResource(),
        MemoryResource(),
        ResponsibilityResource(),
        SkillResource(),
        SoulResource(),
        ToolResource(),
        UserProfileResource(),
    )
}


def build_kind_condition(kinds: Sequence[str], *, is_new: bool) -> Schema:
    """Return the condition that `values` are those of the kind: of a patch, or of a new record."""
    kind, *others = kinds
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {"properties": {"values": get_draft_schema(kind, is_new=is_new)}},
        **({"else": build_kind_condition(others, is_new=is_new)} if others else {}),
    }


def get_draft_schema(kind: str, *, is_new: bool) -> Schema:
    return RESOURCES_BY_KIND[kind].body_schema(is_new=is_new, is_complete=is_new)


DRAFT_SCHEMA = object_schema(
    {
        "kind": enum_schema(sorted(RESOURCES_BY_KIND), title="DraftKind"),
        "key": {
            "anyOf": [integer_schema(1), name_schema(80)],
            "description": "Slug, name or ID of the record. Omit it for a new record.",
        },
        "values": any_object_schema(
            description="The changed fields, as in the body of the record's own endpoint."
        ),
    },
    required=["kind", "values"],
    description="A record with unsaved values.",
    title="RecordDraft",
    **{
        "if": {"required": ["key"]},
        "then": build_kind_condition(sorted(RESOURCES_BY_KIND), is_new=False),
        "else": build_kind_condition(sorted(RESOURCES_BY_KIND), is_new=True),
    },
)


@dataclass(frozen=True)
class RecordDraft:
    """The stored record (or a new unsaved one) and its draft."""

    subject: Record
    draft: DraftRecord


def parse_draft(call: ApiRequest, body: Mapping[str, Any], pointer: str) -> RecordDraft:
    """Parse a draft and validate it by the same rules as a save, without saving it.

    `pointer` is the JSON pointer of `body` in the request; errors are reported below it.
    """
    resource = RESOURCES_BY_KIND[body["kind"]]
    record = get_draft_record(call, resource, body["key"], pointer) if "key" in body else None
    errors = find_schema_errors(get_draft_validator(body["kind"], is_new=record is None), body["values"])
    if errors:
        raise build_nested_problem(pointer, errors)
    try:
        values, _ = resource.parse_values(replace(call, body=body["values"]))
        return build_record_draft(call, resource, record, values)
    except InvalidInput as error:
        renamed = resource.rename_error_fields(error)
        raise build_nested_problem(pointer, list_invalid_fields(renamed)) from error
    except ProblemError as error:
        if not error.problem.errors:
            raise
        raise build_nested_problem(pointer, list(error.problem.errors)) from error


def get_draft_record(call: ApiRequest, resource: RecordResource[Any], key: int | str, pointer: str) -> Record:
    is_key_valid = isinstance(key, int) == (resource.lookup_field == "pk")
    try:
        record: Record | None = resource.find_record(call, key) if is_key_valid else None
    except Http404:
        record = None
    if record is None:
        missing = FieldError("Record not found.", f"{pointer}/key")
        raise ProblemError(validation_problem([missing]))
    return record


@cache
def get_draft_validator(kind: str, *, is_new: bool) -> Draft202012Validator:
    return build_validator(get_draft_schema(kind, is_new=is_new))


def build_record_draft(
    call: ApiRequest, resource: RecordResource[Any], record: Record | None, values: dict[str, Any]
) -> RecordDraft:
    if record is None:
        subject = build_new_record(resource.model, call.workspace, values)
    else:
        subject, values = record, resource.complete_values(record, values)
    draft = build_valid_draft(subject, values, derived=resource.derived_fields)
    return RecordDraft(subject, draft)


def build_nested_problem(pointer: str, errors: list[FieldError]) -> ProblemError:
    return ProblemError(
        validation_problem([FieldError(error.detail, f"{pointer}/values{error.pointer}") for error in errors])
    )
