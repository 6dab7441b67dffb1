"""What is asked of the server: each call as plain data, without the key."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

ROOT = "/api/v1/"
JSON_TYPE = "application/json"
LOCAL_PART = "Give the address of the server alone, such as https://dramatis.example.com."


@dataclass(frozen=True)
class Request:
    """One call; all of ours may be sent again, for those with an effect carry an Idempotency-Key."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


def server_address(url: str) -> str:
    """The address without anything that does not belong there; a key or password in it would be logged."""
    parts = urlsplit(url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"The server's address must begin with http:// or https://. {LOCAL_PART}")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(LOCAL_PART)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def get(path: str, **params: str) -> Request:
    return Request("GET", ROOT + path, params)


def post(path: str, body: Any) -> Request:
    """Named, so that however often it is sent there is one effect."""
    headers = {"Content-Type": JSON_TYPE, "Idempotency-Key": uuid4().hex}
    return Request("POST", ROOT + path, headers=headers, content=written(body))


def fetch(agent: str, channel: str, label: str, etags: Iterable[str] = ()) -> Request:
    known = ", ".join(etags)
    headers = {"If-None-Match": known} if known else {}
    params = {"channel": channel, "label": label}
    return Request("GET", f"{ROOT}agents/{segment(agent)}/prompt", params, headers)


def segment(name: str | int) -> str:
    """One name of an address; nothing in it can lead elsewhere."""
    text = str(name)
    if not text.strip("."):
        raise ValueError(f"{text!r} cannot be a name.")
    return quote(text, safe="")


def written(value: Any) -> bytes:
    return json.dumps(
        value, ensure_ascii=False, default=_told, separators=(",", ":"), allow_nan=False
    ).encode()


def _told(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be sent.")
