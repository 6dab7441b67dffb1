"""From a body to a draft: one record as it would be, held to the same shapes as when it is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.http import Http404
from jsonschema import Draft202012Validator

from personas.agents.api import Agents, Channels, Identities, Souls, Tools, UserProfiles
from personas.api.exception_handler import fields_of, invalid
from personas.api.operations import Call
from personas.api.problems import FieldError, ProblemError
from personas.api.record_resource import RecordResource
from personas.api.schema import anything, choice, shape, whole, word
from personas.api.validation import errors_in, validator
from personas.errors import Invalid
from personas.memories.api import Memories
from personas.models import Record
from personas.work.api import Responsibilities
from prompts.inputs import Draft
from prompts.preview.drafts import checked_draft, new_record
from skills.library.api import Skills

FAMILIES: dict[str, RecordResource[Any]] = {
    resource.model.kind: resource
    for resource in (
        Agents(),
        Channels(),
        Identities(),
        Memories(),
        Responsibilities(),
        Skills(),
        Souls(),
        Tools(),
        UserProfiles(),
    )
}
CHANGED = shape(
    {
        "kind": choice(sorted(FAMILIES)),
        "key": {"anyOf": [whole(1), word(80)], "description": "Its slug, name or id; absent for a new one."},
        "values": anything(description="As in the body of its own address: those that would change."),
    },
    required=["kind", "values"],
    description="A record with values that nobody has saved.",
)


@dataclass(frozen=True)
class Drafted:
    """A record as it is, or as it would be made, and the draft of it."""

    subject: Record
    draft: Draft


def drafted(call: Call, said: Mapping[str, Any], pointer: str) -> Drafted:
    """Nothing is saved; what would be refused then is refused now, with pointers into this body."""
    resource = FAMILIES[said["kind"]]
    record = named(call, resource, said["key"], pointer) if "key" in said else None
    wrong = errors_in(checked(said["kind"], is_new=record is None), said["values"])
    if wrong:
        raise below(pointer, wrong)
    try:
        values, _ = resource.values(replace(call, body=said["values"]))
        return prepared(call, resource, record, values)
    except Invalid as error:
        raise below(pointer, fields_of(error)) from error
    except ProblemError as error:
        if not error.problem.errors:
            raise
        raise below(pointer, list(error.problem.errors)) from error


def named(call: Call, resource: RecordResource[Any], key: int | str, pointer: str) -> Record:
    is_fitting = isinstance(key, int) == (resource.key == "pk")
    try:
        found: Record | None = resource.find(call, key) if is_fitting else None
    except Http404:
        found = None
    if found is None:
        wrong = FieldError("There is no such record here.", f"{pointer}/key")
        raise ProblemError(invalid([wrong]))
    return found


@cache
def checked(kind: str, *, is_new: bool) -> Draft202012Validator:
    return validator(FAMILIES[kind].body(is_new=is_new, is_whole=is_new))


def prepared(
    call: Call, resource: RecordResource[Any], record: Record | None, values: dict[str, Any]
) -> Drafted:
    if record is None:
        subject = new_record(resource.model, call.workspace, values)
    else:
        subject, values = record, resource.completed(record, values)
    draft = checked_draft(subject, values, derived=resource.derived)
    return Drafted(subject, draft)


def below(pointer: str, wrong: list[FieldError]) -> ProblemError:
    return ProblemError(
        invalid([FieldError(error.detail, f"{pointer}/values{error.pointer}") for error in wrong])
    )
