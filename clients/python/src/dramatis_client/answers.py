"""An answer as it came, read with distrust: what stands between may answer in the server's place."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dramatis_client.problems import FieldError, Problem, Unreachable

PROBLEM_TYPE = "application/problem+json"
DIRECTIVE = re.compile(r"([a-z-]+)=(\d{1,9})")


@dataclass(frozen=True)
class Answer:
    """Status, headers by lower-case name, and bytes."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> float | None:
        """In seconds, which is how the server says it."""
        said = self.headers.get("retry-after", "").strip()
        return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None

    @property
    def caching(self) -> dict[str, int]:
        """The numbers in Cache-Control."""
        said = self.headers.get("cache-control", "").lower()
        return {name: int(seconds) for name, seconds in DIRECTIVE.findall(said)}

    def json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise Unreachable(f"The answer ({self.status}) is not JSON.") from error
        if not isinstance(value, dict):
            raise Unreachable(f"The answer ({self.status}) is not a JSON object.")
        return value

    def problem(self) -> Problem | None:
        """What the server says is wrong; None when these are not its words but, say, a proxy's."""
        if self.content_type != PROBLEM_TYPE:
            return None
        try:
            said = self.json()
        except Unreachable:
            return None
        return self._problem(said) if isinstance(said.get("code"), str) else None

    def failure(self) -> Problem | Unreachable:
        """Why this is not what was asked for, as something to raise."""
        said = self.problem()
        return said or Unreachable(f"Something else than Dramatis answered {self.status}.")

    def _problem(self, said: dict[str, Any]) -> Problem:
        return Problem(
            self.status,
            said["code"],
            str(said.get("detail", "")),
            title=str(said.get("title", "")),
            errors=[_field_error(one) for one in said.get("errors") or () if isinstance(one, dict)],
            request_id=str(said.get("request_id", "")),
            retry_after=self.retry_after,
        )


def _field_error(said: Mapping[str, Any]) -> FieldError:
    names = ("detail", "pointer", "parameter", "header")
    return FieldError(**{name: str(said.get(name, "")) for name in names})
