"""Notes who took away which list."""

from django.db import transaction

from personas.actors import Actor
from personas.models import Workspace
from personas.services.history import note_event


@transaction.atomic
def note_export(
    workspace: Workspace, name: str, file_format: str, filters: dict[str, str], *, by: Actor
) -> None:
    """One line in the audit log, with what the list was narrowed down to."""
    # Words that were searched for may be somebody's name, and a log forgets nothing.
    told = {"list": name, "format": file_format} | {
        word: "(words)" if word == "q" else value[:100] for word, value in filters.items()
    }
    note_event(
        workspace, "exported", "workspace", workspace.pk, f"{name} as {file_format}", by=by, after=told
    )
