"""Row locks on sources."""

from skills.models import Source


def lock_source(source: Source) -> Source:
    """Lock the source: verbs of people and runs of workers take turns."""
    rows = Source.objects.in_workspace(source.workspace_id).select_related("workspace")
    # Its key stays free, so that one can still ask for the next look while this one is being stored.
    return rows.select_for_update(of=("self",), no_key=True).get(pk=source.pk)
