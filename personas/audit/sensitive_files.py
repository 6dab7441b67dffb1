"""Lists that tell about people and access, as files: the password once more, and a line in the audit log."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from personas.audit.audited_export import note_export
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.export import Column, file_answer, file_asked

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
