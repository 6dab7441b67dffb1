"""API operations. Each is declared once, for request validation, execution and the OpenAPI document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator

from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches
from personas.api.responses import ApiResponse
from personas.api.schema import Schema
from personas.api.validation import build_validator
from personas.api_keys.format import ADMIN
from personas.api_keys.scopes import VERB_PERMISSIONS
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
    method: str = "GET"

    @property
    def workspace(self) -> Any:
        return self.caller.workspace

    @property
    def actor(self) -> Any:
        return self.caller.actor

    @property
    def if_match(self) -> str | None:
        return self.headers.get("If-Match")


JSON_TYPE = "application/json"
VERBS_BY_PERMISSION = {
    permission: verb for verb, permissions in VERB_PERMISSIONS[ADMIN].items() for permission in permissions
}
# Minimum time between the deprecation of an operation and its removal.
MIN_NOTICE = timedelta(days=180)
OperationHandler = Callable[..., ApiResponse]


@dataclass(frozen=True)
class Operation:
    """Declaration of one HTTP method of one URL: handler, permission, request and response schemas."""

    run: OperationHandler
    summary: str
    # Name of the operation in generated clients: a verb and a noun in lowerCamelCase, such as `createAgent`.
    operation_id: str = ""
    permission: Permission = Permission.READ
    # Whether bot keys may use this operation too, in addition to admin keys. A bot gets no text that others
    # wrote, unless the operation serves released text and writes a ledger row (docs/keys.md, What bots read).
    bots: bool = False
    # Verb that a key needs. If empty, the verb follows from `permission`.
    verb: str = ""
    # Whether every valid key may use this operation, whatever its verbs are.
    is_for_all_keys: bool = False
    # What the operation reads or writes. Without it, keys limited to some agents, channels or labels get 403.
    touches: Touches | None = None
    answer: Schema | None = None
    status: int = 200
    body: Schema | None = None
    # Media type of the request body. The handler gets the parsed value of JSON, and the text of other types.
    body_type: str = JSON_TYPE
    query: Mapping[str, Schema] = field(default_factory=dict)
    # Names of the parameters in `query` that are required.
    required_params: Sequence[str] = ()
    # Fields of the response that a PUT may contain too, unchanged. They are not part of `body`.
    read_only_fields: frozenset[str] = frozenset()
    # Whether requests must have an If-Match header.
    is_conditional: bool = False
    # Whether a PUT creates a resource that does not exist (201). Requests may then send `If-None-Match: *`.
    can_create: bool = False
    # Whether requests may have an Idempotency-Key, so that a retry does not repeat the change.
    is_retryable: bool = False
    # Name of the rate limit budget. If empty: "read" if `permission` is READ, otherwise "write".
    budget: str = ""
    # Error responses to document, as problem codes by HTTP status, besides those common to all operations.
    refusals: Mapping[int, str] = field(default_factory=dict)
    # Whether the created resource has a URL. If so, the Location header contains it.
    is_addressable: bool = True
    note: str = ""
    example: Any = None
    body_example: Any = None
    tag: str = ""
    # `extra_responses`: other responses to document that are not errors, such as 304. `extra_content`: media
    # types of the normal response besides JSON, or instead of JSON if `answer` is None.
    extra_responses: Sequence[tuple[int, Mapping[str, Any]]] = ()
    extra_content: Mapping[str, Any] = field(default_factory=dict)

    # Deprecation (docs/api-versioning.md): since when, when the operation may be removed, and its successor.
    # The successor is a path below /api/v1/ that may contain URL parameters, such as `agents/{agent}`.
    deprecated_at: date | None = None
    sunset_at: date | None = None
    successor: str = ""

    def __post_init__(self) -> None:
        if self.sunset_at and (not self.deprecated_at or self.sunset_at < self.deprecated_at + MIN_NOTICE):
            raise ValueError(
                f"{self.operation_id}: the notice period must be at least {MIN_NOTICE.days} days."
            )

    @cached_property
    def body_validator(self) -> Draft202012Validator | None:
        return build_validator(self.body) if self.body is not None else None

    @property
    def required_verb(self) -> str:
        return "" if self.is_for_all_keys else self.verb or VERBS_BY_PERMISSION[self.permission]

    @property
    def is_write(self) -> bool:
        """Whether the limits of keys for writing apply: to every operation that needs more than READ."""
        return self.permission is not Permission.READ

    @property
    def rate_limit_budget(self) -> str:
        return self.budget or ("read" if self.permission is Permission.READ else "write")


def raise_not_implemented(*args: Any, **kwargs: Any) -> ApiResponse:
    """Raise NotImplementedError: the handler of operations that a separate view implements.

    Such an operation is declared only for the OpenAPI document.
    """
    raise NotImplementedError("This operation has its own view.")
