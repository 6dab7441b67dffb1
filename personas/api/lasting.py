"""Answers that never change: kept by whoever asked, and not sent twice."""

from typing import Any

from personas.api.etags import TAG
from personas.api.operations import Call
from personas.api.responses import Answer, written

FOR_EVER = "private, max-age=31536000, immutable"
# As OpenAPI has it.
NOT_MODIFIED: tuple[tuple[int, dict[str, Any]], ...] = (
    (304, {"description": "You have it already: the ETag is among those of If-None-Match."}),
)


def lasting(call: Call, value: Any, etag: str) -> Answer:
    headers = {"ETag": f'"{etag}"', "Cache-Control": FOR_EVER}
    if is_known(call.headers.get("If-None-Match", ""), etag):
        return Answer(304, headers=headers)
    return Answer(200, written(value), headers)


def is_known(said: str, etag: str) -> bool:
    return said.strip() == "*" or any(tag == etag for _, tag in TAG.findall(said))
