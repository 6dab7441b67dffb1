"""Problem details (RFC 9457): the format of every API error."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from personas.api.schema import object_schema

PROBLEM_CONTENT_TYPE = "application/problem+json"
# Title by problem code. The title is the same for every error with that code; `detail` differs per request.
PROBLEM_TITLES = {
    "bad_request": "Malformed request",
    "invalid_json": "The body is not valid JSON",
    "invalid_key": "No valid key",
    "out_of_scope": "Not allowed for this key",
    "not_allowed": "Not allowed",
    "not_found": "Not found",
    "no_version": "No version yet",
    "method_not_allowed": "Method not allowed",
    "not_acceptable": "Media type not available",
    "conflict": "Changed in the meantime",
    "in_use": "Still in use",
    "in_progress": "First request still in progress",
    "email_not_sent": "Email not sent",
    "erased": "Erased",
    "refused": "Refused",
    "precondition_failed": "Changed in the meantime",
    "precondition_required": "If-Match is missing",
    "body_too_large": "Body too large",
    "body_timeout": "The body took too long",
    "unsupported_media_type": "Content type not supported",
    "invalid": "Invalid values",
    "idempotency_key_reused": "Idempotency-Key already used",
    "archived": "Archived",
    "invalid_bundle": "The files cannot be accepted",
    "invalid_invitation": "No valid invitation",
    "endpoint_disabled": "The endpoint is disabled",
    "key_revoked": "The key was revoked",
    "key_expired": "The key has expired",
    "limit_reached": "Limit reached",
    "no_signing_key": "No signing key",
    "invalid_file_status": "Not possible in this file status",
    "not_copyable": "The skill cannot be copied",
    "not_erasable": "Cannot be erased",
    "not_exportable": "Cannot be exported",
    "not_a_push_source": "Not a source of pushed files",
    "digest_mismatch": "The text does not match its digest",
    "not_key_owner": "Key belongs to another user",
    "no_version_at_time": "No version at that time",
    "nothing_to_release": "Nothing to release",
    "release_closed": "The release is closed",
    "release_voided": "The release was voided",
    "expired": "Deleted after the retention period",
    "unknown_version": "Unknown version",
    "unknown_ledger_entry": "Ledger entry not found",
    "unknown_label": "Label not found",
    "rate_limited": "Too many requests",
    "call_quota_exceeded": "Daily quota of stored data used up",
    "daily_limit_reached": "Daily limit reached",
    "workspace_limit_reached": "Too many workspaces",
    "server_error": "Server error",
    "unavailable": "Temporarily unavailable",
    "storage_full": "The disk is full",
    "channel_not_enabled": "Channel not enabled for this agent",
    "draft_changed": "The draft has changed",
    "too_many_drafts": "Too many drafts",
}

FIELD_ERROR_SCHEMA = object_schema(
    {
        "detail": {"type": "string", "description": "What is wrong with the value."},
        "pointer": {"type": "string", "description": "A JSON pointer into the body."},
        "parameter": {"type": "string", "description": "The name of a query parameter."},
        "header": {"type": "string", "description": "The name of a header."},
    },
    required=["detail"],
    title="FieldError",
    description="An invalid value: where it is, and what is wrong with it.",
)
PROBLEM_SCHEMA = object_schema(
    {
        "type": {"type": "string", "description": "The path of a page about this code."},
        "title": {
            "type": "string",
            "description": ("The title of the code. It does not vary between requests."),
        },
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What happened in this request."},
        "code": {"type": "string", "enum": sorted(PROBLEM_TITLES), "title": "ProblemCode"},
        "request_id": {"type": "string", "description": "The id of the request, as in X-Request-ID."},
        "errors": {"type": "array", "items": FIELD_ERROR_SCHEMA},
    },
    required=["type", "title", "status", "detail", "code", "request_id"],
    title="Problem",
    description="An error (RFC 9457).",
)


MAX_PLACE_LENGTH = 120


@dataclass(frozen=True)
class FieldError:
    """Description of an invalid value, and its location.

    The location is a JSON pointer into the body, the name of a query parameter or the name of a header.
    """

    detail: str
    pointer: str = ""
    parameter: str = ""
    header: str = ""

    @property
    def place(self) -> str:
        """The location as people write it: `messages[0].content`, or the name of a parameter or header."""
        steps = [step.replace("~1", "/").replace("~0", "~") for step in self.pointer.split("/")[1:]]
        path = "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in steps).removeprefix(".")
        return (self.parameter or self.header or path)[:MAX_PLACE_LENGTH]

    def to_json(self) -> dict[str, str]:
        location = {"pointer": self.pointer, "parameter": self.parameter, "header": self.header}
        return {"detail": self.detail} | {name: value for name, value in location.items() if value}


@dataclass(frozen=True)
class Problem:
    """An API error in the format of RFC 9457."""

    status: int
    code: str
    detail: str
    errors: Sequence[FieldError] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return PROBLEM_TITLES.get(self.code, "Refused")

    def to_json(self, request_id: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "type": f"/api/v1/docs/errors#{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
        }
        if self.errors:
            body["errors"] = [error.to_json() for error in self.errors]
        return body

    def to_bytes(self, request_id: str) -> bytes:
        return json.dumps(self.to_json(request_id), ensure_ascii=False).encode("utf-8", "replace")


class ProblemError(Exception):
    """Exception with a problem, which the exception handler sends as the response."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def json_pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) for a path of object keys and array indexes."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
