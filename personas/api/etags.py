"""Marks of what a caller has seen: ETags of records, and the If-Match that a change must carry."""

import re
from typing import Any

from personas.api.operations import Call
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import Answer, written
from personas.models import Record

# A tag as ETag, If-Match and If-None-Match write it: whether it is weak, and its words.
TAG = re.compile(r'(W/)?"([^"]*)"')


def etag_of(record: Record) -> str:
    """Changes with every edit, and when the record is shelved or comes back."""
    return f'"{record.revision}{"a" if record.is_archived else ""}"'


def require_match(record: Record, if_match: str | None) -> None:
    """Go on only if the caller has seen the record as it is now."""
    refuse_unless(etag_of(record), if_match)


def refuse_unless(etag: str, if_match: str | None) -> None:
    if not if_match:
        needed = FieldError("Send the ETag of what you have seen.", header="If-Match")
        raise ProblemError(Problem(428, "precondition_required", "A change needs If-Match.", [needed]))
    if if_match.strip() == "*":
        return
    # Weak tags never match here: they promise less than a change needs.
    tags = [f'"{tag}"' for weak, tag in TAG.findall(if_match) if not weak]
    if etag not in tags:
        detail = f"It has changed since you looked: its ETag is {etag} now. Read it again."
        raise ProblemError(Problem(412, "precondition_failed", detail, headers={"ETag": etag}))


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
