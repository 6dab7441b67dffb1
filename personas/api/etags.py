"""ETags of records, and checks of the request headers If-Match and If-None-Match."""

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import ApiResponse, encode_json
from personas.models import Record

# An ETag: an optional prefix `W/` that marks it as weak, and a quoted value.
ETAG_PATTERN = re.compile(r'(W/)?"([^"]*)"')
# The ETag of a read ends with a hash of the response body. If-Match ignores this hash: the precondition
# protects the record, not the rest of the response, such as the names of linked records.
BODY_HASH_LENGTH = 12
BODY_HASH = re.compile(rf'\.[0-9a-f]{{{BODY_HASH_LENGTH}}}"$')


def get_record_etag(record: Record) -> str:
    """Return the ETag of a record. It changes when the record is edited, archived or restored."""
    return f'"{record.revision}{"a" if record.is_archived else ""}"'


def check_if_match(record: Record, if_match: str | None) -> None:
    """Raise 412 unless If-Match contains the current ETag of the record; raise 428 without If-Match."""
    check_etag(get_record_etag(record), if_match)


def check_etag(etag: str, if_match: str | None, *, exists: bool = True) -> None:
    """Raise 412 unless If-Match contains this ETag; `*` matches whatever exists (RFC 9110, 13.1.1)."""
    if not if_match:
        error = FieldError("Send the ETag from your last read.", header="If-Match")
        raise ProblemError(Problem(428, "precondition_required", "If-Match is required.", [error]))
    if if_match.strip() == "*":
        if not exists:
            detail = "If-Match: * requires an existing resource, and this one does not exist."
            raise ProblemError(Problem(412, "precondition_failed", detail))
        return
    if not ETAG_PATTERN.search(if_match):
        error = FieldError(f"Send the ETag with its double quotes, for example {etag}.", header="If-Match")
        raise ProblemError(Problem(400, "bad_request", f"If-Match: {error.detail}", [error]))
    # If-Match uses strong comparison (RFC 9110), so weak tags never match.
    tags = [f'"{tag}"' for weak, tag in ETAG_PATTERN.findall(if_match) if not weak]
    if etag not in tags and etag not in [BODY_HASH.sub('"', tag) for tag in tags]:
        detail = f"The resource has changed since you read it. Its ETag is now {etag}. Read it again."
        raise ProblemError(Problem(412, "precondition_failed", detail, headers={"ETag": etag}))


def check_put_precondition(headers: Mapping[str, str], etag: str, *, exists: bool) -> None:
    """Check the precondition of a PUT that can create: If-Match, or `If-None-Match: *` to create only."""
    if_none_match = headers.get("If-None-Match", "").strip()
    if headers.get("If-Match") or if_none_match != "*":
        check_etag(etag, headers.get("If-Match"), exists=exists)
    elif exists:
        detail = f"The resource already exists. Its ETag is {etag}."
        raise ProblemError(Problem(412, "precondition_failed", detail, headers={"ETag": etag}))


# Clients may store the response, but must revalidate it before reuse: its text may have been erased.
REVALIDATE_CACHE_CONTROL = "private, no-cache"
# OpenAPI description of the response 304, for operations that support If-None-Match.
NOT_MODIFIED_RESPONSES: tuple[tuple[int, dict[str, Any]], ...] = (
    (304, {"description": "Your copy is current: If-None-Match contains its ETag."}),
)


def etag_response(call: ApiRequest, value: Any, etag: str) -> ApiResponse:
    """Return a value that changes only if text in it is erased, or 304 if the client has it already."""
    headers = {"ETag": f'"{etag}"', "Cache-Control": REVALIDATE_CACHE_CONTROL}
    if has_matching_etag(call.headers.get("If-None-Match", ""), etag):
        return ApiResponse(304, headers=headers)
    return ApiResponse(200, encode_json(value), headers)


def needs_revalidation(response: ApiResponse) -> bool:
    """Whether If-None-Match is to be checked. Responses with their own Cache-Control have done it already."""
    return response.status == 200 and "ETag" in response.headers and "Cache-Control" not in response.headers


def revalidate_response(response: ApiResponse, if_none_match: str) -> ApiResponse:
    """Add a hash of the body to the ETag of a read, and return 304 if the client has this body already.

    The ETag of a record is its revision. The body also shows linked records, which have their own revisions.
    """
    body_hash = sha256(response.body).hexdigest()[:BODY_HASH_LENGTH]
    etag = "{}.{}".format(response.headers["ETag"].strip('"'), body_hash)
    headers = {**response.headers, "ETag": f'"{etag}"', "Cache-Control": REVALIDATE_CACHE_CONTROL}
    if has_matching_etag(if_none_match, etag):
        return ApiResponse(304, headers=headers)
    return replace(response, headers=headers)


def has_matching_etag(if_none_match: str, etag: str) -> bool:
    return if_none_match.strip() == "*" or any(tag == etag for _, tag in ETAG_PATTERN.findall(if_none_match))
