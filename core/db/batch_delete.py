"""Deletes many rows a few at a time, so that no statement runs into its limit and nobody waits for long."""

from typing import Any

from django.db.models import QuerySet

BATCH_SIZE = 1_000
# Per run: other jobs want their turn, and the schedule comes again.
MAX_BATCHES = 200


def delete_in_batches(rows: QuerySet[Any]) -> int:
    """Each batch commits by itself; how many rows went. A row that meanwhile is another's business stays."""
    gone = 0
    for _ in range(MAX_BATCHES):
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE])
        if not keys:
            break
        deleted, _by_kind = rows.filter(pk__in=keys).delete()
        gone += deleted
    return gone
