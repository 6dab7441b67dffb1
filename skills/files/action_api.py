"""What is decided about context files: adopted, ignored, heeded again, waived for a while."""

from datetime import date, timedelta
from typing import Any

from django.urls import URLPattern
from django.utils import timezone
from django.utils.dateparse import parse_date

from personas.api.exception_handler import problem_of
from personas.api.operations import Call, Operation
from personas.api.responses import Answer, answered
from personas.api.schema import Shape, digest, line, listed, shape, whole
from personas.api.views import endpoint
from personas.errors import DomainError, Invalid
from personas.roles import Permission
from skills.api_helpers import TEXT, refuse_limited, row_or_404
from skills.files.api import TAG, found, given, visible
from skills.files.schema import FULL_FILE
from skills.files.selectors import waivers_of
from skills.files.services import adopt_file, end_waiver, heed_file, ignore_file, waive_findings
from skills.models import ContextFile

USUAL_WAIVER = timedelta(days=30)
MOST_AT_ONCE = 50
NOT_HERE = {"code": "not_found", "detail": "There is nothing here under this name."}
# What was seen; empty for a file that is gone.
SEEN: Shape = {
    "type": "string",
    "pattern": "^(?:[0-9a-f]{64})?$",
    "description": "The `seen_digest` of what you have looked at.",
}
DAY: Shape = {
    "type": "string",
    "format": "date",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "description": "The last day, at most a year from now; 30 days from now when absent.",
}
WAIVE = shape({"digest": digest(), "reason": line(500, least=1), "until": DAY}, required=["digest", "reason"])
PICKS = shape(
    {
        "files": listed(
            shape({"id": whole(1), "digest": SEEN}), most=MOST_AT_ONCE, minItems=1, uniqueItems=True
        )
    }
)
ADOPTED = shape(
    {
        "adopted": listed(whole(1), description="Ids of the files that were adopted."),
        "refused": listed(
            shape({"pointer": TEXT, "id": whole(1), "code": TEXT, "detail": TEXT}),
            description="One refusal stops no other.",
        ),
    }
)


def adopt(call: Call, key: int) -> Answer:
    refuse_limited(call)
    adopt_file(found(call, key), digest=call.body["digest"], by=call.actor)
    return given(call, found(call, key))


def adopt_many(call: Call) -> Answer:
    refuse_limited(call)
    picks = call.body["files"]
    known = {file.pk: file for file in visible(call).filter(pk__in=[pick["id"] for pick in picks])}
    adopted, refused = [], []
    for place, pick in enumerate(picks):
        if why := refusal_of(call, known.get(pick["id"]), pick["digest"]):
            refused.append({"pointer": f"/files/{place}", "id": pick["id"], **why})
        else:
            adopted.append(pick["id"])
    return answered({"adopted": adopted, "refused": refused})


def refusal_of(call: Call, file: ContextFile | None, seen: str) -> dict[str, str] | None:
    """Adopt one of many; None when it was."""
    if file is None:
        return NOT_HERE
    try:
        adopt_file(file, digest=seen, by=call.actor)
    except DomainError as error:
        problem = problem_of(error)
        return {"code": problem.code, "detail": problem.detail}
    return None


def ignore(call: Call, key: int) -> Answer:
    refuse_limited(call)
    ignore_file(found(call, key), by=call.actor)
    return given(call, found(call, key))


def heed(call: Call, key: int) -> Answer:
    refuse_limited(call)
    heed_file(found(call, key), by=call.actor)
    return given(call, found(call, key))


def waive(call: Call, key: int) -> Answer:
    refuse_limited(call)
    said: dict[str, Any] = call.body
    waive_findings(
        found(call, key), digest=said["digest"], reason=said["reason"], until=last_day(said), by=call.actor
    )
    return given(call, found(call, key))


def last_day(said: dict[str, Any]) -> date:
    if "until" not in said:
        return timezone.now().date() + USUAL_WAIVER
    try:
        day = parse_date(said["until"])
    except ValueError:
        day = None
    if day is None:
        raise Invalid.on("until", "There is no such day.")
    return day


def take_back(call: Call, key: int, waiver: int) -> Answer:
    refuse_limited(call)
    rows = waivers_of(found(call, key)).select_related("file__source")
    end_waiver(row_or_404(rows, waiver), by=call.actor)
    return given(call, found(call, key))


EDITS: dict[str, Any] = {"permission": Permission.EDIT, "is_retryable": True, "tag": TAG}
APPROVES = EDITS | {"permission": Permission.APPROVE}
ROW = "context-files/<int:key>"
urlpatterns: list[URLPattern] = [
    endpoint(
        "context-files:adopt",
        "context-files-adopt-many",
        post=Operation(
            adopt_many, "Adopt several files, each as it was seen", body=PICKS, answer=ADOPTED, **EDITS
        ),
    ),
    endpoint(
        f"{ROW}:adopt",
        "context-files-adopt",
        post=Operation(
            adopt,
            "Agree to what a file says now, or to its being gone",
            body=shape({"digest": SEEN}),
            answer=FULL_FILE,
            **EDITS,
        ),
    ),
    endpoint(
        f"{ROW}:ignore",
        "context-files-ignore",
        post=Operation(ignore, "Leave a file out of every prompt", answer=FULL_FILE, **EDITS),
    ),
    endpoint(
        f"{ROW}:heed",
        "context-files-heed",
        post=Operation(heed, "Heed an ignored file again", answer=FULL_FILE, **EDITS),
    ),
    endpoint(
        f"{ROW}:waive",
        "context-files-waive",
        post=Operation(
            waive,
            "Let a quarantined revision be used until a day, for a reason",
            body=WAIVE,
            answer=FULL_FILE,
            **APPROVES,
        ),
    ),
    endpoint(
        f"{ROW}/waivers/<int:waiver>:end",
        "context-files-end-waiver",
        post=Operation(take_back, "Take a waiver back", answer=FULL_FILE, **APPROVES),
    ),
]
