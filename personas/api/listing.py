"""How lists are answered: pages, the fields asked for, and the way to the next page."""

from typing import Any
from urllib.parse import urlencode

from personas.api.exception_handler import invalid
from personas.api.operations import Call
from personas.api.pagination import Page
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import text

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
