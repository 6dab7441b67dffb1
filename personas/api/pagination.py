"""Pages by cursor: rows come in the order of their ids, and none is missed or shown twice."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet

from personas.api.exception_handler import invalid
from personas.api.operations import Call
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import Shape, text, whole

M = TypeVar("M", bound=Model)
USUAL, MOST = 50, 200
PAGING: dict[str, Shape] = {
    "limit": whole(1, MOST, default=USUAL, description="Rows per page."),
    "cursor": {
        "type": "string",
        "minLength": 1,
        "maxLength": 40,
        "pattern": "^[A-Za-z0-9_-]+$",
        "description": "The `next_cursor` of the page before.",
    },
}


@dataclass(frozen=True)
class Page:
    """Some rows, and where the next ones begin."""

    rows: list[Any]
    next_cursor: str | None


def page_of_rows(rows: QuerySet[M], *, limit: int, cursor: str, newest_first: bool = False) -> Page:
    """The rows behind the cursor; one more is looked for, to know whether to go on."""
    after = read_cursor(cursor) if cursor else None
    if after is not None:
        rows = rows.filter(pk__lt=after) if newest_first else rows.filter(pk__gt=after)
    found = list(rows.order_by("-pk" if newest_first else "pk")[: limit + 1])
    shown = found[:limit]
    return Page(shown, write_cursor(shown[-1].pk) if len(found) > limit else None)


def write_cursor(pk: int) -> str:
    return base64.urlsafe_b64encode(f"p{pk}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> int:
    try:
        said = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        said = ""
    if not said.startswith("p") or not said[1:].isdecimal() or len(said) > 19:
        wrong = FieldError("This is not a cursor that was given out here.", parameter="cursor")
        raise ProblemError(Problem(422, "invalid", wrong.detail, [wrong]))
    return int(said[1:])


FIELDS = text(
    400,
    pattern=r"^[a-z_]+(?:,[a-z_]+)*$",
    least=1,
    description="Only these fields of each row, separated by commas.",
)


def picked(told: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Only the fields asked for; one that nobody knows is a mistake that should show."""
    if not wanted:
        return told
    names = wanted.split(",")
    if strange := [name for name in names if name not in told]:
        wrong = FieldError(f"There is no field “{strange[0]}” here.", parameter="fields")
        raise ProblemError(invalid([wrong]))
    return {name: told[name] for name in names}


def page_answered(call: Call, page: Page, data: list[dict[str, Any]]) -> Answer:
    """A page as JSON, with the address of the next one in the Link header too."""
    wanted = call.query.get("fields", "")
    said = {
        "data": [picked(row, wanted) for row in data],
        "next_cursor": page.next_cursor,
        "has_more": page.next_cursor is not None,
    }
    link = f'<{call.path}?{next_query(call, page.next_cursor)}>; rel="next"' if page.next_cursor else ""
    return answered(said, Link=link)


def next_query(call: Call, cursor: str) -> str:
    said = {name: value for name, value in call.query.items() if name != "cursor"} | {"cursor": cursor}
    return urlencode(
        {name: moment_told(value) if hasattr(value, "isoformat") else value for name, value in said.items()}
    )
