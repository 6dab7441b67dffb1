"""One thing a caller can do at an address: said once, then checked, carried out and published from here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator

from personas.api.authentication import ApiClient
from personas.api.responses import ApiResponse
from personas.api.schema import Schema
from personas.api.validation import build_validator
from personas.roles import Permission


@dataclass
class ApiRequest:
    """One request that has passed the gate: who, what was sent, and in which words it was asked."""

    caller: ApiClient
    body: Any
    query: dict[str, Any]
    headers: Mapping[str, str]
    request_id: str
    path: str

    @property
    def workspace(self) -> Any:
        return self.caller.workspace

    @property
    def actor(self) -> Any:
        return self.caller.actor

    @property
    def if_match(self) -> str | None:
        return self.headers.get("If-Match")


OperationHandler = Callable[..., ApiResponse]


@dataclass(frozen=True)
class Operation:
    """What is asked for and given at one method of one address."""

    run: OperationHandler
    summary: str
    permission: Permission = Permission.READ
    # Whether a bot's key may do it, and not only a key that acts for a person.
    bots: bool = False
    answer: Schema | None = None
    status: int = 200
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    # Words of the query that must be there.
    needed: Sequence[str] = ()
    # Needs If-Match.
    is_conditional: bool = False
    # Takes an Idempotency-Key, that is: has an effect that a retry would double.
    is_retryable: bool = False
    # Which budget it is paid from; by default that of its permission.
    budget: str = ""
    # What may go wrong besides what always may: statuses with their codes.
    refusals: Mapping[int, str] = field(default_factory=dict)
    note: str = ""
    example: Any = None
    body_example: Any = None
    tag: str = ""
    # Further answers that are no refusals (304), and further forms of the good one, as OpenAPI has them.
    others: Sequence[tuple[int, Mapping[str, Any]]] = ()
    other_answers: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def checked_body(self) -> Draft202012Validator | None:
        return build_validator(self.body) if self.body is not None else None

    @property
    def paid_from(self) -> str:
        return self.budget or ("read" if self.permission is Permission.READ else "write")


def raise_not_implemented(*args: Any, **named: Any) -> ApiResponse:
    """For operations that are published here and carried out by a view of their own."""
    raise NotImplementedError("This operation has its own view.")
