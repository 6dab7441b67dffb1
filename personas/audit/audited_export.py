"""Notes who took away which list."""

from itertools import islice

from django.db import transaction

from personas.actors import Actor
from personas.models import Workspace
from personas.records.revisions import note_event

# Whatever else an address says is no filter of ours.
MOST_FILTERS, LONGEST_WORD, LONGEST_VALUE = 20, 40, 100


@transaction.atomic
def note_export(
    workspace: Workspace, name: str, file_format: str, filters: dict[str, str], *, by: Actor
) -> None:
    """One line in the audit log, with what the list was narrowed down to."""
    # Words that were searched for may be somebody's name, and a log forgets nothing.
    told = {"list": name, "format": file_format} | {
        plain(word)[:LONGEST_WORD]: "(words)" if word == "q" else plain(value)[:LONGEST_VALUE]
        for word, value in islice(filters.items(), MOST_FILTERS)
    }
    note_event(
        workspace, "exported", "workspace", workspace.pk, f"{name} as {file_format}", by=by, after=told
    )


def plain(said: str) -> str:
    """Without the one character that PostgreSQL does not keep."""
    return said.replace("\x00", "")
