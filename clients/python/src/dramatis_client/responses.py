"""HTTP responses, parsed defensively: a proxy may have answered instead of the server."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dramatis_client.problems import FieldError, Problem, Unreachable

PROBLEM_TYPE = "application/problem+json"
DIRECTIVE = re.compile(r"([a-z-]+)=(\d{1,9})")


@dataclass(frozen=True)
class Response:
    """Status, headers by lower-case name, and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> float | None:
        """Retry-After in seconds; the server never sends the date form, which is ignored."""
        header = self.headers.get("retry-after", "").strip()
        return float(header) if header.isascii() and header.isdigit() and len(header) < 10 else None

    @property
    def cache_control(self) -> dict[str, int]:
        """The numeric directives of Cache-Control."""
        header = self.headers.get("cache-control", "").lower()
        return {name: int(seconds) for name, seconds in DIRECTIVE.findall(header)}

    def json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise Unreachable(f"The response ({self.status}) is not JSON.") from error
        if not isinstance(value, dict):
            raise Unreachable(f"The response ({self.status}) is not a JSON object.")
        return value

    def parse_problem(self) -> Problem | None:
        """Return the server's problem document (RFC 9457), or None if a proxy has answered."""
        if self.content_type != PROBLEM_TYPE:
            return None
        try:
            document = self.json()
        except Unreachable:
            return None
        return self._build_problem(document) if isinstance(document.get("code"), str) else None

    def to_error(self) -> Problem | Unreachable:
        """Return the exception to raise for an unsuccessful response."""
        problem = self.parse_problem()
        return problem or Unreachable(f"The response ({self.status}) did not come from Dramatis.")

    def _build_problem(self, document: dict[str, Any]) -> Problem:
        return Problem(
            self.status,
            document["code"],
            str(document.get("detail", "")),
            title=str(document.get("title", "")),
            errors=[_build_field_error(one) for one in document.get("errors") or () if isinstance(one, dict)],
            request_id=str(document.get("request_id", "")),
            retry_after=self.retry_after,
        )


def _build_field_error(error: Mapping[str, Any]) -> FieldError:
    names = ("detail", "pointer", "parameter", "header")
    return FieldError(**{name: str(error.get(name, "")) for name in names})
