"""Row locks on sources."""

from skills.models import Source


def lock_source(source: Source) -> Source:
    """Lock the row of the source, so that user actions and refresh runs are serialized."""
    rows = Source.objects.in_workspace(source.workspace_id).select_related("workspace")
    # FOR NO KEY UPDATE: a run that refers to the source can still be inserted while this lock is held.
    return rows.select_for_update(of=("self",), no_key=True).get(pk=source.pk)
