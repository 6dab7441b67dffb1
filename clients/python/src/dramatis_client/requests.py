"""Requests as plain data, without the API key."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

ROOT = "/api/v1/"
JSON_TYPE = "application/json"
ADDRESS_HINT = "Use the base URL of the server, for example https://dramatis.example.com."


@dataclass(frozen=True)
class Request:
    """One HTTP request. Every request is safe to retry: those that write carry an Idempotency-Key."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


def validate_server_url(url: str) -> str:
    """Return the normalized server URL; reject passwords, queries and fragments, which would be logged."""
    parts = urlsplit(url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"The server URL must start with http:// or https://. {ADDRESS_HINT}")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(ADDRESS_HINT)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def get_request(path: str, **params: str) -> Request:
    return Request("GET", ROOT + path, params)


def post_request(path: str, body: Any) -> Request:
    """Build a POST with an Idempotency-Key, so that retries have one effect."""
    headers = {"Content-Type": JSON_TYPE, "Idempotency-Key": uuid4().hex}
    return Request("POST", ROOT + path, headers=headers, content=encode_json(body))


def prompt_request(
    agent: str, channel: str, label: str, version: int | None = None, etags: Iterable[str] = ()
) -> Request:
    known_etags = ", ".join(etags)
    headers = {"If-None-Match": known_etags} if known_etags else {}
    params = {"label": label} if version is None else {"label": label, "version": str(version)}
    return Request("GET", ROOT + prompt_path(agent, channel), params, headers)


def prompt_path(agent: str, channel: str) -> str:
    return f"agents/{quote_segment(agent)}/channels/{quote_segment(channel)}/prompt"


def quote_segment(name: str | int) -> str:
    """Return a name as one quoted path segment; "." and ".." are rejected."""
    text = str(name)
    if not text.strip("."):
        raise ValueError(f"{text!r} is not a valid name.")
    return quote(text, safe="")


def encode_json(value: Any) -> bytes:
    return json.dumps(
        value, ensure_ascii=False, default=_encode_value, separators=(",", ":"), allow_nan=False
    ).encode()


def _encode_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} values cannot be sent.")
