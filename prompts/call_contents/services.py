"""Store the data of a call before its ledger row is written."""

from collections.abc import Mapping

from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from prompts.call_contents.quota import PROCESS_RESERVATIONS, get_utc_day
from prompts.models import CallContent


def store_call_data(workspace_id: int, row_size: int, contents: Mapping[str, bytes]) -> None:
    """Charge the daily quota and store the long values of a call, given by digest.

    `row_size` are the bytes that the ledger row stores itself. A value that the workspace already has takes
    no further bytes. Raise CallQuotaExceeded, before anything is stored, if the quota is used up.

    The contents are committed before the ledger row refers to them. If that row is then not written, they
    stay unused until retention deletes them.
    """
    if not contents:
        PROCESS_RESERVATIONS.take(workspace_id, row_size)
        return
    today = get_utc_day(timezone.now())
    with workspace_scope(workspace_id):
        rows = CallContent.objects.in_workspace(workspace_id).filter(digest__in=list(contents))
        stored = {row.digest: row for row in rows.defer("data")}
        new = {digest for digest in contents if digest not in stored or stored[digest].erased_at}
        PROCESS_RESERVATIONS.take(workspace_id, row_size + sum(len(contents[digest]) for digest in new))
        due = new | {digest for digest, row in stored.items() if row.last_used_on < today}
        if due:
            # With its data also if it exists: retention may delete an unused row at the same time.
            CallContent.objects.in_workspace(workspace_id).bulk_create(
                [
                    CallContent(
                        workspace_id=workspace_id,
                        digest=digest,
                        size=len(contents[digest]),
                        data=contents[digest],
                        last_used_on=today,
                    )
                    for digest in sorted(due)
                ],
                update_conflicts=True,
                unique_fields=["workspace", "digest"],
                # Content that was erased is stored again, because the row of this call needs it.
                update_fields=["data", "erased_at", "last_used_on"],
            )
