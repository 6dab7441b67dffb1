"""Build revisions of records."""

from personas.actors import Actor
from personas.models import Record, Revision


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
