"""API operations: one declaration is used for validation, for execution and for the OpenAPI document."""

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
    """An authenticated and validated API request."""

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
    """Declaration of one method of one URL: handler, permission, request and response schemas."""

    run: OperationHandler
    summary: str
    permission: Permission = Permission.READ
    # Whether bot keys may use it, and not only admin keys.
    bots: bool = False
    answer: Schema | None = None
    status: int = 200
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    # Required query parameters.
    required_params: Sequence[str] = ()
    # Requires If-Match.
    is_conditional: bool = False
    # Accepts an Idempotency-Key, because a retry would repeat its effect.
    is_retryable: bool = False
    # Rate limit budget; by default "read" or "write", depending on the permission.
    budget: str = ""
    # Problem codes by status, in addition to those that every operation has.
    refusals: Mapping[int, str] = field(default_factory=dict)
    note: str = ""
    example: Any = None
    body_example: Any = None
    tag: str = ""
    # OpenAPI objects: further responses that are no errors (304), and further media types of the response.
    extra_responses: Sequence[tuple[int, Mapping[str, Any]]] = ()
    extra_content: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def body_validator(self) -> Draft202012Validator | None:
        return build_validator(self.body) if self.body is not None else None

    @property
    def rate_limit_budget(self) -> str:
        return self.budget or ("read" if self.permission is Permission.READ else "write")


def raise_not_implemented(*args: Any, **kwargs: Any) -> ApiResponse:
    """Handler of operations that are documented here and implemented by a separate view."""
    raise NotImplementedError("This operation has its own view.")
