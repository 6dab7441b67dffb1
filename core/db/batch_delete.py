"""Delete many rows in batches, so that no statement times out and locks are held only briefly."""

from typing import Any

from django.db.models import QuerySet

BATCH_SIZE = 1_000
# Limit per run, so that the job does not block a worker; the next scheduled run continues.
MAX_BATCHES = 200


def delete_in_batches(rows: QuerySet[Any]) -> int:
    """Delete the rows, one transaction per batch, and return how many were deleted.

    Each DELETE repeats the filter of `rows`, so a row that has changed and no longer matches is kept.
    """
    total = 0
    for _ in range(MAX_BATCHES):
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE])
        if not keys:
            break
        deleted, _by_kind = rows.filter(pk__in=keys).delete()
        total += deleted
    return total
