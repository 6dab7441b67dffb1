"""Notes who took away which list."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.http import StreamingHttpResponse

from personas.actors import Actor
from personas.audit.services import note_event
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.export import Column, file_answer, file_asked

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


# Neither narrows the list down.
BESIDE = {"format", "page", "before", "sort"}


def noted_file(
    request: WorkspaceRequest, name: str, columns: Sequence[Column], rows: Iterable[Any]
) -> StreamingHttpResponse:
    """The file, once it is written down who took it; its view asks for the password before."""
    file_format = file_asked(request) or "csv"
    said = {word: str(value) for word, value in request.GET.items() if value and word not in BESIDE}
    if request.method == "GET":
        note_export(request.workspace, name, file_format, said, by=request.actor)
    return file_answer(request.workspace, name, file_format, columns, rows)
