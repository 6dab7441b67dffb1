"""Read the data of a call that a ledger row refers to."""

from collections.abc import Mapping
from typing import Any

from prompts.models import CallContent, LedgerEntry
from prompts.proof.call_values import CONTENTS_KEY, get_value_digests, join_call_values


def get_call_contents(workspace_id: int, stored: Mapping[str, Any]) -> dict[str, bytes | None]:
    """Return the values that the row of a call names by digest; None if one was erased."""
    digests = set(get_value_digests(stored).values())
    if not digests:
        return {}
    rows = CallContent.objects.in_workspace(workspace_id).filter(digest__in=digests)
    return {
        digest: None if data is None else bytes(data) for digest, data in rows.values_list("digest", "data")
    }


def get_call_salts(workspace_id: int, *stored: Mapping[str, Any]) -> dict[str, str]:
    """Return the salts of the values that the rows of calls name, by digest. Erased values have none."""
    digests = {digest for values in stored for digest in get_value_digests(values).values()}
    if not digests:
        return {}
    rows = CallContent.objects.in_workspace(workspace_id).filter(digest__in=digests, salt__isnull=False)
    return {digest: salt or "" for digest, salt in rows.values_list("digest", "salt")}


def get_call_values(entry: LedgerEntry) -> dict[str, Any]:
    """Return the slots of a ledger row with all values. Raise MissingCallValue if one was erased."""
    return join_call_values(entry.slots, get_call_contents(entry.workspace_id, entry.slots))


def get_remaining_call_values(entry: LedgerEntry) -> dict[str, Any]:
    """Return the slots of a ledger row without the values that were erased."""
    contents = get_call_contents(entry.workspace_id, entry.slots)
    digests = get_value_digests(entry.slots)
    left = {name: digest for name, digest in digests.items() if contents.get(digest) is not None}
    return join_call_values({**entry.slots, CONTENTS_KEY: left}, contents)
