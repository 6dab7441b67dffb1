"""Write revisions of records."""

from personas.actors import Actor
from personas.models import Record, Revision


def write_revision(record: Record, *, by: Actor, message: str = "") -> Revision:
    """Save a snapshot of the record under its current revision number."""
    revision = build_revision(record, by=by, message=message)
    Revision.objects.insert([revision])
    return revision


def build_revision(record: Record, *, by: Actor, message: str = "") -> Revision:
    """Build a revision from the record's current content and revision number, without saving it."""
    return Revision(
        workspace_id=record.workspace_id,
        kind=record.kind,
        object_id=record.pk,
        number=record.revision,
        data=record.snapshot(),
        author=by.user,
        author_label=by.label,
        message=message,
    )
