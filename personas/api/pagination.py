"""Keyset pagination by id: no row is skipped or repeated if rows are added between two requests."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode
from zlib import crc32

from django.db.models import Model, QuerySet

from personas.api.exception_handler import validation_problem
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import Schema, enum_schema, integer_schema, text_schema

M = TypeVar("M", bound=Model)
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 50, 200
PAGINATION_PARAMS: dict[str, Schema] = {
    "limit": integer_schema(1, MAX_PAGE_SIZE, default=DEFAULT_PAGE_SIZE, description="Rows per page."),
    "cursor": {
        "type": "string",
        "minLength": 1,
        "maxLength": 40,
        "pattern": "^[A-Za-z0-9_-]+$",
        "description": "The `next_cursor` of the previous page. On the last page, it is null.",
    },
}


@dataclass(frozen=True)
class CursorPage:
    """One page of rows and the cursor of the next page."""

    rows: list[Any]
    next_cursor: str | None


def paginate_rows(rows: QuerySet[M], *, limit: int, cursor: str, newest_first: bool = False) -> CursorPage:
    """Return the next `limit` rows after the cursor. One extra row is read to detect whether more follow."""
    kind = rows.model._meta.label_lower
    after = decode_cursor(cursor, kind) if cursor else None
    if after is not None:
        rows = rows.filter(pk__lt=after) if newest_first else rows.filter(pk__gt=after)
    rows_and_next = list(rows.order_by("-pk" if newest_first else "pk")[: limit + 1])
    page_rows = rows_and_next[:limit]
    has_more = len(rows_and_next) > limit
    return CursorPage(page_rows, encode_cursor(page_rows[-1].pk, kind) if has_more else None)


def paginate_list(rows: list[Any], kind: str, *, limit: int, cursor: str) -> CursorPage:
    """Return the next `limit` rows of a list that is computed for each request. Its cursors are offsets."""
    start = decode_cursor(cursor, kind) if cursor else 0
    end = start + limit
    return CursorPage(rows[start:end], encode_cursor(end, kind) if end < len(rows) else None)


def encode_cursor(position: int, kind: str) -> str:
    """Return the cursor of a position. It is valid only for lists of the same kind."""
    text = f"{crc32(kind.encode()):08x}{position}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, kind: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    prefix, position = text[:8], text[8:]
    if prefix != f"{crc32(kind.encode()):08x}" or not position.isdecimal() or len(position) > 18:
        error = FieldError("This cursor is not valid for this list.", parameter="cursor")
        raise ProblemError(Problem(422, "invalid", f"cursor: {error.detail}", [error]))
    return int(position)


ANY = "any"
ARCHIVED_PARAM = enum_schema(
    ["false", "true", ANY],
    default="false",
    description="Which archived rows are listed: none, only archived rows, or all rows.",
    title="ArchivedFilter",
)
FIELDS_PARAM = text_schema(
    400,
    pattern=r"^[a-z_]+(?:,[a-z_]+)*$",
    least=1,
    description="Return only these fields of each row, separated by commas.",
)


def select_fields(row: dict[str, Any], fields: str) -> dict[str, Any]:
    """Return only the fields listed in `fields`, separated by commas. Raise 422 for an unknown field."""
    if not fields:
        return row
    names = fields.split(",")
    if unknown := [name for name in names if name not in row]:
        error = FieldError(f"Unknown field “{unknown[0]}”.", parameter="fields")
        raise ProblemError(validation_problem([error]))
    return {name: row[name] for name in names}


def page_response(call: ApiRequest, page: CursorPage, data: list[dict[str, Any]]) -> ApiResponse:
    """Return a page as JSON, with the URL of the next page in the Link header."""
    fields = call.query.get("fields", "")
    body = {
        "items": [select_fields(row, fields) for row in data],
        "next_cursor": page.next_cursor,
    }
    link = f'<{call.path}?{build_next_query(call, page.next_cursor)}>; rel="next"' if page.next_cursor else ""
    return json_response(body, Link=link)


def complete_list_response(items: list[dict[str, Any]]) -> ApiResponse:
    """Return a short list in the format of a page. It is always complete, so there is no next page."""
    return json_response({"items": items, "next_cursor": None})


def build_next_query(call: ApiRequest, cursor: str) -> str:
    params = {name: value for name, value in call.query.items() if name != "cursor"} | {"cursor": cursor}
    return urlencode(
        {
            name: datetime_json(value) if hasattr(value, "isoformat") else value
            for name, value in params.items()
        }
    )
