"""API actions on context files: approve, ignore, stop ignoring, waive findings, end a waiver."""

from datetime import date, timedelta
from typing import Any

from django.urls import URLPattern
from django.utils import timezone
from django.utils.dateparse import parse_date

from personas.api.exception_handler import exception_to_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    Schema,
    array_schema,
    digest_schema,
    integer_schema,
    line_schema,
    object_schema,
)
from personas.api.views import endpoint
from personas.errors import DomainError, InvalidInput
from personas.roles import Permission
from skills.api_helpers import TEXT_SCHEMA, row_or_404
from skills.files.api import API_TAG, context_file_or_404, context_file_response, list_visible_files
from skills.files.schema import FILE_DETAIL_SCHEMA
from skills.files.selectors import list_waivers
from skills.files.services import approve_file, end_waiver, ignore_file, unignore_file, waive_findings
from skills.models import ContextFile

DEFAULT_WAIVER_PERIOD = timedelta(days=30)
MAX_BATCH_SIZE = 50
NOT_FOUND_ERROR = {"code": "not_found", "detail": "Not found."}
# The digest of the content that the client saw. Empty for a missing file.
SEEN_DIGEST_SCHEMA: Schema = {
    "type": "string",
    "pattern": "^(?:[0-9a-f]{64})?$",
    "description": "The `seen_digest` of the file as you saw it.",
}
WAIVER_DATE_SCHEMA: Schema = {
    "type": "string",
    "format": "date",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "description": "The last day, at most a year from now. Default: 30 days from now.",
}
WAIVER_REQUEST_SCHEMA = object_schema(
    {"digest": digest_schema(), "reason": line_schema(500, least=1), "until": WAIVER_DATE_SCHEMA},
    required=["digest", "reason"],
    title="WaiverInput",
)
BULK_APPROVAL_SCHEMA = object_schema(
    {
        "files": array_schema(
            object_schema(
                {"id": integer_schema(1), "digest": SEEN_DIGEST_SCHEMA}, title="ContextFileApproval"
            ),
            most=MAX_BATCH_SIZE,
            minItems=1,
            uniqueItems=True,
        )
    },
    title="ContextFileApprovals",
)
BULK_APPROVAL_RESULT_SCHEMA = object_schema(
    {
        "approved": array_schema(integer_schema(1), description="Ids of the files that were approved."),
        "refused": array_schema(
            object_schema(
                {"pointer": TEXT_SCHEMA, "id": integer_schema(1), "code": TEXT_SCHEMA, "detail": TEXT_SCHEMA},
                title="ContextFileRejection",
            ),
            description="One rejected file does not affect the others.",
        ),
    },
    title="ContextFileApprovalResult",
)


def approve_context_file(call: ApiRequest, key: int) -> ApiResponse:
    approve_file(context_file_or_404(call, key), digest=call.body["digest"], by=call.actor)
    return context_file_response(call, context_file_or_404(call, key))


def approve_context_files(call: ApiRequest) -> ApiResponse:
    picks = call.body["files"]
    files = {file.pk: file for file in list_visible_files(call).filter(pk__in=[pick["id"] for pick in picks])}
    approved, refused = [], []
    for index, pick in enumerate(picks):
        if error := try_approve_file(call, files.get(pick["id"]), pick["digest"]):
            refused.append({"pointer": f"/files/{index}", "id": pick["id"], **error})
        else:
            approved.append(pick["id"])
    return json_response({"approved": approved, "refused": refused})


def try_approve_file(call: ApiRequest, file: ContextFile | None, digest: str) -> dict[str, str] | None:
    """Approve one file of a batch. Return None on success, otherwise the error as JSON."""
    if file is None:
        return NOT_FOUND_ERROR
    try:
        approve_file(file, digest=digest, by=call.actor)
    except DomainError as error:
        problem = exception_to_problem(error)
        return {"code": problem.code, "detail": problem.detail}
    return None


def ignore_context_file(call: ApiRequest, key: int) -> ApiResponse:
    ignore_file(context_file_or_404(call, key), by=call.actor)
    return context_file_response(call, context_file_or_404(call, key))


def unignore_context_file(call: ApiRequest, key: int) -> ApiResponse:
    unignore_file(context_file_or_404(call, key), by=call.actor)
    return context_file_response(call, context_file_or_404(call, key))


def waive_context_file(call: ApiRequest, key: int) -> ApiResponse:
    body: dict[str, Any] = call.body
    waive_findings(
        context_file_or_404(call, key),
        digest=body["digest"],
        reason=body["reason"],
        until=parse_waiver_end(body),
        by=call.actor,
    )
    return context_file_response(call, context_file_or_404(call, key))


def parse_waiver_end(body: dict[str, Any]) -> date:
    if "until" not in body:
        return timezone.now().date() + DEFAULT_WAIVER_PERIOD
    try:
        day = parse_date(body["until"])
    except ValueError:
        day = None
    if day is None:
        raise InvalidInput.on("until", "This date does not exist.")
    return day


def end_context_file_waiver(call: ApiRequest, key: int, waiver: int) -> ApiResponse:
    rows = list_waivers(context_file_or_404(call, key)).select_related("file__source")
    end_waiver(row_or_404(rows, waiver), by=call.actor)
    return context_file_response(call, context_file_or_404(call, key))


EDIT_OPTIONS: dict[str, Any] = {
    "permission": Permission.EDIT,
    "touches": Touches.WORKSPACE,
    "is_retryable": True,
    "tag": API_TAG,
}
APPROVE_OPTIONS = EDIT_OPTIONS | {"permission": Permission.APPROVE}
FILE_ROUTE = "context-files/<int:id>"
urlpatterns: list[URLPattern] = [
    endpoint(
        "context-files:approve",
        "context-files-approve-many",
        post=Operation(
            approve_context_files,
            "Approve several context files",
            operation_id="approveContextFiles",
            body=BULK_APPROVAL_SCHEMA,
            answer=BULK_APPROVAL_RESULT_SCHEMA,
            **EDIT_OPTIONS,
        ),
    ),
    endpoint(
        f"{FILE_ROUTE}:approve",
        "context-files-approve",
        post=Operation(
            approve_context_file,
            "Approve the present content of a context file",
            operation_id="approveContextFile",
            body=object_schema({"digest": SEEN_DIGEST_SCHEMA}, title="SeenContent"),
            answer=FILE_DETAIL_SCHEMA,
            **EDIT_OPTIONS,
        ),
    ),
    endpoint(
        f"{FILE_ROUTE}:ignore",
        "context-files-ignore",
        post=Operation(
            ignore_context_file,
            "Ignore a context file",
            operation_id="ignoreContextFile",
            answer=FILE_DETAIL_SCHEMA,
            **EDIT_OPTIONS,
        ),
    ),
    endpoint(
        f"{FILE_ROUTE}:unignore",
        "context-files-unignore",
        post=Operation(
            unignore_context_file,
            "Stop ignoring a context file",
            operation_id="unignoreContextFile",
            answer=FILE_DETAIL_SCHEMA,
            **EDIT_OPTIONS,
        ),
    ),
    endpoint(
        f"{FILE_ROUTE}:waive",
        "context-files-waive",
        post=Operation(
            waive_context_file,
            "Waive the findings of a quarantined revision",
            operation_id="waiveContextFile",
            body=WAIVER_REQUEST_SCHEMA,
            answer=FILE_DETAIL_SCHEMA,
            **APPROVE_OPTIONS,
        ),
    ),
    endpoint(
        f"{FILE_ROUTE}/waivers/<int:waiver>:end",
        "context-files-end-waiver",
        post=Operation(
            end_context_file_waiver,
            "End a waiver",
            operation_id="endContextFileWaiver",
            answer=FILE_DETAIL_SCHEMA,
            **APPROVE_OPTIONS,
        ),
    ),
]
