"""Exceptions: a problem reported by the server, or no response from it."""

from collections.abc import Sequence
from dataclasses import dataclass


class DramatisError(Exception):
    """Base class of the errors raised for a server's response, or for the lack of one."""


class Unreachable(DramatisError):
    """No response, or one that does not come from Dramatis, such as a proxy's error page."""


class NotFillable(DramatisError):
    """The text cannot be filled without the server; `render` can."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one value, and where it is in the request."""

    detail: str
    pointer: str = ""
    parameter: str = ""
    header: str = ""

    @property
    def location(self) -> str:
        """The JSON pointer, parameter or header."""
        return self.pointer or self.parameter or self.header

    def __str__(self) -> str:
        return f"{self.location}: {self.detail}" if self.location else self.detail


class Problem(DramatisError):
    """The server's problem document (RFC 9457); `code` is for programs, `detail` is for display."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        title: str = "",
        errors: Sequence[FieldError] = (),
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, code, detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.title = title
        self.errors = tuple(errors)
        self.request_id = request_id
        # Seconds to wait before a retry, if the server sent Retry-After.
        self.retry_after = retry_after

    def __str__(self) -> str:
        """Return status, code and detail, and which fields are wrong."""
        fields = [str(error) for error in self.errors]
        if len(fields) == 1 and self.errors[0].detail == self.detail:
            return f"{self.status} {self.code}: {fields[0]}"
        listed = f" ({' '.join(fields)})" if fields else ""
        return f"{self.status} {self.code}: {self.detail}{listed}"

    def __reduce__(self) -> tuple[object, ...]:
        """Make the exception picklable, for process pools: keyword-only arguments are lost by default."""
        return (_rebuild_problem, (self.status, self.code, self.detail, self.__dict__.copy()))


def _rebuild_problem(status: int, code: str, detail: str, attributes: dict[str, object]) -> Problem:
    problem = Problem(status, code, detail)
    problem.__dict__.update(attributes)
    return problem
