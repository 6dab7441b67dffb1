"""Store contents (bytes) under their SHA-256 digest."""

from collections.abc import Mapping

from personas.models import Content, Workspace


def store_contents(workspace: Workspace | int, data: Mapping[str, bytes]) -> None:
    """Store contents, given by digest. Those that the workspace already has are skipped."""
    if not data:
        return
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
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
