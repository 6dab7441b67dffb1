"""Delete the data of calls that no ledger row refers to any more."""

from datetime import timedelta

from django.db.models import Min
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.limits.daily_usage import get_utc_day
from prompts.models import CallContent, LedgerEntry

# A ledger row can be dated later than the last use of its contents: midnight may pass, and clocks differ.
MARGIN = timedelta(days=2)


def delete_unused_call_contents(workspace_id: int) -> int:
    """Delete contents that were last used before the oldest ledger row of the workspace; return their number.

    A ledger row refers only to contents that were used on its day or later. So this needs no search through
    the rows, and a content stays as long as any row that may refer to it.
    """
    rows = LedgerEntry.objects.in_workspace(workspace_id)
    oldest = rows.aggregate(at=Min("at"))["at"] or timezone.now()
    contents = CallContent.objects.in_workspace(workspace_id)
    return delete_in_batches(contents.filter(last_used_on__lt=get_utc_day(oldest) - MARGIN))
