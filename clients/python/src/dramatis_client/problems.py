"""What goes wrong, as exceptions: the server's own words, or no word from it at all."""

from collections.abc import Sequence
from dataclasses import dataclass


class DramatisError(Exception):
    """Whatever this package raises on account of the server."""


class Unreachable(DramatisError):
    """No answer, or none that the server itself can have given."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one value, and where it stands."""

    detail: str
    pointer: str = ""
    parameter: str = ""
    header: str = ""


class Problem(DramatisError):
    """A refusal in the server's words (RFC 9457); `code` is for programs, `detail` for people."""

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
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.title = title
        self.errors = tuple(errors)
        self.request_id = request_id
        # Seconds to wait before another try, where the server said so.
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        """An exception with named arguments does not pickle by itself, and workers send theirs home."""
        return (_again, (self.status, self.code, self.detail, self.__dict__.copy()))


def _again(status: int, code: str, detail: str, rest: dict[str, object]) -> Problem:
    problem = Problem(status, code, detail)
    problem.__dict__.update(rest)
    return problem
