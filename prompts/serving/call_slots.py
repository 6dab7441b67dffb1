"""Prepare the slots of a call: leave out what the layout does not use, and limit the size of the rest."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from personas.errors import InvalidInput
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.runtime_lines import drop_unknown_facts
from prompts.assembly.slots import Slots
from prompts.assembly.unplaced_inputs import SLOT_INPUTS, drop_unused_slots, list_unplaced_slots
from prompts.proof.call_values import SplitValues, split_call_values
from prompts.proof.canonical import canonical_json, encode_json
from prompts.serving.slot_values import SlotData, build_clock_slots, fill_clock, normalize_slots

# Bytes of canonical JSON that one call may store.
MAX_CALL_SIZE = 64 * 1024
# By slot: the name of the field in the request, if it differs.
REQUEST_NAMES = {"tool_definitions": "tools"}


class PreparedSlots(NamedTuple):
    """The slots of a call, their JSON, and what is stored of them."""

    slots: Slots
    # All values, as canonical JSON.
    values: bytes
    # None if the call sent no values. Otherwise they are stored apart from the ledger row, and their bytes
    # count towards the daily quota.
    split: SplitValues | None = None

    def encode_stored(self, digests: Mapping[str, str]) -> bytes:
        """Return what the ledger row stores. `digests` are those of the values by their plain SHA-256."""
        return self.split.encode(digests) if self.split else self.values


class UsedSlots(NamedTuple):
    """The slots of a call that the layout uses, and the names of those that it has no place for."""

    slots: Slots
    unplaced: tuple[str, ...]
    # Keys of host and sandbox that no layout uses.
    unknown: tuple[str, ...] = ()


def prepare_clock_slots(now: datetime, timezone: str) -> PreparedSlots:
    """Prepare the slots of a call that sent none: the server fills in the time."""
    slots, values = build_clock_slots(now, timezone)
    # All values are text, so they need no conversion for the canonical form.
    return PreparedSlots(slots, encode_json(values).encode())


def select_used_slots(layout_name: str, slots: Slots) -> UsedSlots:
    """Leave out the slots that the layout does not use, and the messages, which no layout uses.

    Messages are sent back with the response as they came.
    """
    slots, unknown = drop_unknown_facts(slots)
    layout = LAYOUTS.get(layout_name)
    if layout is None:
        return UsedSlots(replace(slots, messages=()), (), unknown)
    used, dropped = drop_unused_slots(layout, slots)
    inputs = [name for name in dropped if name in SLOT_INPUTS]
    unplaced = (*inputs, *list_unplaced_slots(layout, slots))
    return UsedSlots(replace(used, messages=()), unplaced, unknown)


def prepare_call_slots(used: Slots, now: datetime, timezone: str) -> PreparedSlots:
    """Fill in the time and normalize the slots. Raise InvalidInput if they are too large to store."""
    slots, values = normalize_slots(fill_clock(used, now, timezone))
    encoded = canonical_json(values)
    if len(encoded) > MAX_CALL_SIZE:
        raise build_size_error(values, len(encoded))
    return PreparedSlots(slots, encoded, split_call_values(values) if used != Slots() else None)


def build_size_error(values: SlotData, size: int) -> InvalidInput:
    """Build an error that names the largest field and the limit."""
    sizes = {name: measure_value(value) for name, value in values.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    return InvalidInput.on(
        REQUEST_NAMES.get(largest, largest),
        f"The data of a call can have at most {MAX_CALL_SIZE:,} bytes of JSON. This call has "
        f"{size:,}, and this field {sizes[largest]:,}.",
    )


def measure_value(value: Any) -> int:
    return len(canonical_json(value))
