"""What an operation gives back, before it is written: a status, JSON and a few headers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class ApiResponse:
    """Ready to be sent, or to be kept for a retry."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    # What a retry is answered, where that may say less: a secret is shown once.
    kept: bytes | None = None
    content_type: str = "application/json"

    @property
    def lasting(self) -> bytes:
        return self.body if self.kept is None else self.kept


def json_response(value: Any, status: int = 200, *, kept: Any = None, **headers: str) -> ApiResponse:
    """JSON with headers; their names are written with _ for -."""
    named = {name.replace("_", "-"): said for name, said in headers.items() if said}
    return ApiResponse(status, encode_json(value), named, None if kept is None else encode_json(kept))


def no_content_response() -> ApiResponse:
    return ApiResponse(204)


def encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=json_default, separators=(",", ":")).encode()


def json_default(value: object) -> str:
    if isinstance(value, datetime):
        return datetime_json(value)
    raise TypeError(f"{type(value).__name__} has no place in an answer.")


def datetime_json(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")
