"""Read the data of a call that a ledger row refers to."""

from collections.abc import Mapping
from typing import Any

from prompts.models import CallContent, LedgerEntry
from prompts.proof.call_values import get_value_digests, join_call_values


def get_call_contents(workspace_id: int, stored: Mapping[str, Any]) -> dict[str, bytes | None]:
    """Return the long values of a call by digest; None if one was erased."""
    digests = set(get_value_digests(stored).values())
    if not digests:
        return {}
    rows = CallContent.objects.in_workspace(workspace_id).filter(digest__in=digests)
    return {
        digest: None if data is None else bytes(data) for digest, data in rows.values_list("digest", "data")
    }


def get_call_values(entry: LedgerEntry) -> dict[str, Any]:
    """Return the slots of a ledger row with their long values. Raise MissingCallValue if one was erased."""
    return join_call_values(entry.slots, get_call_contents(entry.workspace_id, entry.slots))
