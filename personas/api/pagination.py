"""Pages by cursor: rows come in the order of their ids, and none is missed or shown twice."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.schema import Shape, whole

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
