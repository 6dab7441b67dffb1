"""API responses: status, JSON body and headers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class ApiResponse:
    """Response of an operation. It can be sent, and stored for retries with the same Idempotency-Key."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    # Body to store for retries, if it differs from `body`: a new key's secret is shown only once.
    stored_body: bytes | None = None
    content_type: str = "application/json"
    # Parts of a long body, which is not kept in memory. Such a response is not stored for retries.
    stream: Iterable[str] | None = None

    @property
    def body_to_store(self) -> bytes:
        return self.body if self.stored_body is None else self.stored_body


def json_response(value: Any, status: int = 200, *, stored: Any = None, **headers: str) -> ApiResponse:
    """Return a JSON response.

    `stored` is the JSON value for retries, if it differs. `headers` are keyword arguments: an underscore in a
    name becomes a hyphen, and a header with an empty value is left out.
    """
    http_headers = {name.replace("_", "-"): text for name, text in headers.items() if text}
    return ApiResponse(
        status, encode_json(value), http_headers, None if stored is None else encode_json(stored)
    )


def no_content_response() -> ApiResponse:
    return ApiResponse(204)


def encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=json_default, separators=(",", ":")).encode()


def json_default(value: object) -> str:
    if isinstance(value, datetime):
        return datetime_json(value)
    raise TypeError(f"{type(value).__name__} cannot be serialized.")


def datetime_json(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")
