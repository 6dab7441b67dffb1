"""Import memories.json, the file in which nova keeps the memories that all agents share."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from core.text.timestamps import parse_timestamp
from personas.actors import Actor
from personas.errors import InvalidInput
from personas.memories.services import create_memory
from personas.models import Memory, Workspace
from personas.records.services import FieldValues
from personas.tenancy.lost_nodes import lock_workspace

LIST_KEY = "memories"
# Keys of an entry that can hold its text; the first one that is present is used.
TEXT_KEYS = ("text", "content", "memory")
METADATA_KEYS = ("source", "valid_from", "valid_until")
MAX_ENTRIES = 500
MAX_REPORTED_ERRORS = 20
MAX_IGNORED_KEYS = 20
DEFAULT_SOURCE = "memories.json"


@dataclass(frozen=True)
class MemoryEntry:
    """One entry of the file, with the values of the memory to create."""

    index: int
    values: FieldValues


@dataclass(frozen=True)
class ImportedMemory:
    """The entry at `index`, and the memory that was created for it or already has its text."""

    index: int
    memory: Memory


@dataclass(frozen=True)
class MemoryImport:
    """Result of an import. `ignored_keys` are keys of entries that a memory has no field for."""

    created: list[ImportedMemory] = field(default_factory=list)
    skipped: list[ImportedMemory] = field(default_factory=list)
    ignored_keys: list[str] = field(default_factory=list)


@transaction.atomic
def import_memories(workspace: Workspace, data: Any, *, by: Actor) -> MemoryImport:
    """Create a shared memory for each entry of the file; all are created, or none if an entry is invalid.

    An entry whose text a shared memory already has is skipped, whatever the status of that memory: an import
    does not bring back what was revoked.
    """
    # The lock on the workspace row serializes imports, so that two of them do not create duplicates.
    lock_workspace(workspace.pk)
    entries, ignored_keys = parse_memory_file(data)
    result = MemoryImport(ignored_keys=ignored_keys)
    texts = [entry.values["text"] for entry in entries]
    rows = Memory.objects.in_workspace(workspace).filter(agent=None, text__in=texts)
    known = {memory.text: memory for memory in rows.order_by("-pk")}
    for entry in entries:
        text = entry.values["text"]
        if text in known:
            result.skipped.append(ImportedMemory(entry.index, known[text]))
            continue
        known[text] = create_memory(workspace, entry.values, by=by, message="Imported from memories.json")
        result.created.append(ImportedMemory(entry.index, known[text]))
    return result


def parse_memory_file(data: Any) -> tuple[list[MemoryEntry], list[str]]:
    """Return the entries of the file and the sorted keys that are ignored.

    The file is a list of texts or objects, or an object with such a list under `memories`. Raise InvalidInput
    with the path of each invalid entry, such as `memories.3.text`.
    """
    prefix, rows = _find_entry_list(data)
    entries, ignored, errors = [], set[str](), dict[str, list[str]]()
    for index, row in enumerate(rows):
        try:
            values, other_keys = _parse_entry(row)
        except InvalidInput as error:
            for name, messages in error.errors.items():
                errors[".".join(filter(None, [prefix, str(index), name]))] = messages
        else:
            entries.append(MemoryEntry(index, values))
            ignored |= other_keys
    if errors:
        raise InvalidInput(dict(list(errors.items())[:MAX_REPORTED_ERRORS]))
    return entries, sorted(ignored)[:MAX_IGNORED_KEYS]


def _find_entry_list(data: Any) -> tuple[str, Sequence[Any]]:
    prefix = LIST_KEY if isinstance(data, Mapping) else ""
    rows = data.get(LIST_KEY) if isinstance(data, Mapping) else data
    if not isinstance(rows, list):
        message = _("Expected a list of memories, or an object with a list under “memories”.")
        raise InvalidInput.on(prefix or LIST_KEY, message)
    if len(rows) > MAX_ENTRIES:
        message = _(
            "The file has %(count)s memories, but one import can have at most %(limit)s. Split the file."
        )
        raise InvalidInput.on(prefix or LIST_KEY, message % {"count": len(rows), "limit": MAX_ENTRIES})
    return prefix, rows


def _parse_entry(row: Any) -> tuple[FieldValues, set[str]]:
    if isinstance(row, str):
        return {"text": _clean_field("text", "", row), "source": DEFAULT_SOURCE}, set()
    if not isinstance(row, Mapping):
        raise InvalidInput.on("", _("Expected text or an object."))
    text_key = next((key for key in TEXT_KEYS if key in row), None)
    if text_key is None:
        keys = ", ".join(TEXT_KEYS)
        raise InvalidInput.on(
            "", _("The object has no text. Expected one of these keys: %(keys)s.") % {"keys": keys}
        )
    values: FieldValues = {
        "text": _clean_field("text", text_key, row[text_key]),
        "source": _clean_field("source", "source", row.get("source") or DEFAULT_SOURCE),
    }
    for name in ("valid_from", "valid_until"):
        if row.get(name) is not None:
            values[name] = _parse_timestamp(name, row[name])
    return values, {str(key)[:80] for key in row if key not in {text_key, *METADATA_KEYS}}


def _clean_field(name: str, key: str, value: Any) -> Any:
    """Validate a text by the rules of the model field `name`; errors are reported under `key`."""
    if not isinstance(value, str):
        raise InvalidInput.on(key, _("Must be text."))
    try:
        field: Any = Memory._meta.get_field(name)
        return field.clean(value.strip(), None)
    except ValidationError as error:
        raise InvalidInput({key: error.messages}) from error


def _parse_timestamp(name: str, value: Any) -> datetime:
    """Parse a time. Without a UTC offset, it is in UTC."""
    for suffix in ("", "Z"):
        with suppress(ValueError):
            return parse_timestamp(f"{value}{suffix}")
    raise InvalidInput.on(name, _("Must be a time with a UTC offset, for example 2026-03-07T14:55:05Z."))
