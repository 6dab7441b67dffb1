"""Lets go of old looks at sources: what they found is kept in the files' own revisions."""

from datetime import datetime

from django.db.models import F, OuterRef, Subquery

from core.db.batch_delete import delete_in_batches
from skills.models import RefreshRun, RunStatus

# More than any page shows, and than the sweep asks for to see whether a source is hopeless.
NEWEST = 20
ENDED = (RunStatus.DONE, RunStatus.FAILED, RunStatus.LOST)


def forget_runs_before(moment: datetime) -> int:
    """Runs that had ended by then, but never the newest of a source; how many went."""
    of_source = RefreshRun.unscoped.filter(source=OuterRef("source")).order_by("-pk")
    kept_from = Subquery(of_source.values("pk")[NEWEST - 1 : NEWEST])
    rows = RefreshRun.unscoped.filter(status__in=ENDED, finished_at__lt=moment)
    # Ids grow with time: the first that is young enough spares a look at all that come after it.
    young = RefreshRun.unscoped.filter(requested_at__gte=moment).order_by("pk")
    if first := young.values_list("pk", flat=True).first():
        rows = rows.filter(pk__lt=first)
    return delete_in_batches(rows.annotate(kept_from=kept_from).filter(pk__lt=F("kept_from")))
