"""API to read context files: status, findings and revisions."""

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import FIELDS_PARAM, PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    boolean_schema,
    datetime_schema,
    enum_schema,
    line_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from skills.api_helpers import row_or_404
from skills.discovery.harnesses import FILE_KINDS
from skills.files.schema import (
    FILE_DETAIL_SCHEMA,
    FILE_SCHEMA,
    REVISION_DETAIL_SCHEMA,
    REVISION_SCHEMA,
    context_file_detail_json,
    context_files_json,
    file_revision_json,
    filter_visible_files,
)
from skills.files.selectors import NEEDS_REVIEW, get_revision_text, list_context_files, list_revisions
from skills.models import ContextFile, FileRevision, FileStatus

API_TAG = "context-files"


def index(call: ApiRequest) -> ApiResponse:
    rows = list_visible_files(call)
    for name, column in (("status", "status"), ("source", "source__slug"), ("kind", "file_kind")):
        if value := call.query.get(name):
            rows = rows.filter(**{column: value})
    if since := call.query.get("updated_since"):
        rows = rows.filter(changed_at__gte=since)
    if search := call.query.get("q", "").strip():
        rows = rows.filter(path__icontains=search)
    if "needs_review" in call.query:
        rows = rows.filter(NEEDS_REVIEW if call.query["needs_review"] else ~NEEDS_REVIEW)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, context_files_json(page.rows))


def retrieve_context_file(call: ApiRequest, key: int) -> ApiResponse:
    return context_file_response(call, context_file_or_404(call, key))


def list_file_revisions(call: ApiRequest, key: int) -> ApiResponse:
    rows = list_revisions(context_file_or_404(call, key)).select_related("content").defer("content__data")
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [file_revision_json(row) for row in page.rows])


def retrieve_file_revision(call: ApiRequest, key: int, number: int) -> ApiResponse:
    row = revision_or_404(context_file_or_404(call, key), number)
    revision_text = get_revision_text(row)
    return json_response(
        {
            **file_revision_json(row),
            "text": None if revision_text.is_erased else revision_text.text,
            "is_masked": revision_text.is_masked,
        }
    )


# --- helpers -------------------------------------------------------------------------------------------


def list_visible_files(call: ApiRequest) -> QuerySet[ContextFile]:
    return filter_visible_files(call.caller, list_context_files(call.workspace))


def context_file_or_404(call: ApiRequest, key: int) -> ContextFile:
    return row_or_404(
        list_visible_files(call).select_related("source__workspace", "latest", "approved", "active__content"),
        key,
    )


def context_file_response(call: ApiRequest, file: ContextFile) -> ApiResponse:
    return json_response(context_file_detail_json(call, file))


def revision_or_404(file: ContextFile, number: int) -> FileRevision:
    rows = list_revisions(file).select_related("content").filter(number=number)
    row = rows.first() if 0 < number < 2**31 else None
    if row is None:
        raise Http404
    return row


urlpatterns: list[URLPattern] = [
    endpoint(
        "context-files",
        "context-files-list",
        get=Operation(
            index,
            "List context files",
            operation_id="listContextFiles",
            touches=Touches.AGENT,
            answer=page_schema(FILE_SCHEMA),
            query={
                "q": line_schema(200, least=1, description="Part of a path."),
                "status": enum_schema(FileStatus.values, title="FileStatus"),
                "source": slug_schema(description="Only files of this source."),
                "kind": enum_schema(FILE_KINDS, title="FileKind"),
                "needs_review": boolean_schema(description="Whether it is in the inbox and needs review."),
                "updated_since": datetime_schema(),
                "fields": FIELDS_PARAM,
                **PAGINATION_PARAMS,
            },
            tag=API_TAG,
        ),
    ),
    endpoint(
        "context-files/<int:id>",
        "context-files-one",
        get=Operation(
            retrieve_context_file,
            "Get a context file with its findings",
            operation_id="getContextFile",
            touches=Touches.AGENT,
            answer=FILE_DETAIL_SCHEMA,
            tag=API_TAG,
        ),
    ),
    endpoint(
        "context-files/<int:id>/revisions",
        "context-files-revisions",
        get=Operation(
            list_file_revisions,
            "List the revisions of a context file, newest first",
            operation_id="listContextFileRevisions",
            touches=Touches.AGENT,
            answer=page_schema(REVISION_SCHEMA),
            query=PAGINATION_PARAMS,
            tag=API_TAG,
        ),
    ),
    endpoint(
        "context-files/<int:id>/revisions/<int:revision>",
        "context-files-revision",
        get=Operation(
            retrieve_file_revision,
            "Get a revision of a context file",
            operation_id="getContextFileRevision",
            touches=Touches.AGENT,
            answer=REVISION_DETAIL_SCHEMA,
            tag=API_TAG,
        ),
    ),
]
