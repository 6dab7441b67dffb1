"""Store contents (bytes) under their SHA-256 digest."""

from collections.abc import Mapping

from django.db import connection

from personas.models import Content, Workspace

# First key of the advisory lock of a workspace's contents; the second is the workspace id.
CONTENTS_LOCK = 1_703


def store_contents(workspace: Workspace | int, data: Mapping[str, bytes]) -> None:
    """Store contents, given by digest. Those that the workspace already has are skipped.

    Call it in the transaction that also writes what refers to the contents. Until its end, retention deletes
    no content of the workspace.
    """
    if not data:
        return
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    lock_contents(workspace_id, is_shared=True)
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(data))
    existing = {row.digest: row for row in rows.defer("data")}
    missing = [
        Content(workspace_id=workspace_id, digest=digest, size=len(content), data=content)
        for digest, content in data.items()
        if digest not in existing
    ]
    if missing:
        # Ignore conflicts: a concurrent transaction may insert the same digest, and both rows would be equal.
        Content.objects.in_workspace(workspace_id).bulk_create(missing, ignore_conflicts=True)
    for digest, row in existing.items():
        if row.erased_at is not None:
            # This content was erased earlier. It is needed again, so its data is stored again.
            row.data, row.erased_at = data[digest], None
            row.save(update_fields=["data", "erased_at"])


def lock_contents(workspace_id: int, *, is_shared: bool) -> None:
    """Take the advisory lock of a workspace's contents until the end of the transaction.

    Those who store contents share the lock; retention takes it alone. So no content is deleted between the
    check that it exists and the commit of what refers to it. SQLite runs one writer at a time instead.
    """
    if connection.vendor != "postgresql":
        return
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [CONTENTS_LOCK, workspace_id % 2**31])
