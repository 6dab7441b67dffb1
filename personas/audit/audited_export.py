"""Export of a list as a file. Each export writes an audit event."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.http import StreamingHttpResponse

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.export import ExportColumn, build_export_response, get_export_format

# Limits for the query parameters stored in the audit event, because a URL can contain arbitrary ones.
MAX_FILTERS, MAX_FILTER_NAME_LENGTH, MAX_FILTER_VALUE_LENGTH = 20, 40, 100


@transaction.atomic
def audit_export(
    workspace: Workspace, name: str, file_format: str, filters: dict[str, str], *, by: Actor
) -> None:
    """Write an audit event about the export of a list, with the filters of that list."""
    # Replace the search text (`q`): it may contain personal data, and the audit log is append-only.
    details = {"list": name, "format": file_format} | {
        strip_nul(param)[:MAX_FILTER_NAME_LENGTH]: "(words)"
        if param == "q"
        else strip_nul(value)[:MAX_FILTER_VALUE_LENGTH]
        for param, value in islice(filters.items(), MAX_FILTERS)
    }
    write_audit_event(
        workspace, "exported", "workspace", workspace.pk, f"{name} as {file_format}", by=by, after=details
    )


def strip_nul(text: str) -> str:
    """Remove NUL characters, which PostgreSQL cannot store."""
    return text.replace("\x00", "")


# Query parameters that are not filters, and therefore not stored in the audit event.
NON_FILTER_PARAMS = {"format", "page", "before", "sort"}


def audited_file_response(
    request: WorkspaceRequest, name: str, columns: Sequence[ExportColumn], rows: Iterable[Any]
) -> StreamingHttpResponse:
    """Write the audit event and return the exported file.

    The calling view must have the decorator `require_reauthentication`.
    """
    file_format = get_export_format(request) or "csv"
    filters = {
        param: str(value) for param, value in request.GET.items() if value and param not in NON_FILTER_PARAMS
    }
    if request.method == "GET":
        audit_export(request.workspace, name, file_format, filters, by=request.actor)
    return build_export_response(request.workspace, name, file_format, columns, rows)
