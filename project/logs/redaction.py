"""Redact keys, tokens and passwords in log lines."""

import re
from collections.abc import MutableMapping
from typing import Any

MASK = "[redacted]"

SECRET_NAMES = re.compile(
    r"pass(word|wd)?|secret|token|authorization|cookie|api_?key|credential", re.IGNORECASE
)
API_KEYS = re.compile(r"drm_[a-z]+_[A-Za-z0-9]+")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# A segment of a path. The links of password resets, invitations and email confirmations have a token in the
# path: a long segment, or a signed one with colons.
PATH_SEGMENT = re.compile(r"(?<=/)[A-Za-z0-9_=:.%-]+")
URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")


def redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redact a log event (structlog processor).

    It must be the last processor before rendering, because values that are added later are not redacted.
    """
    for name, value in event.items():
        event[name] = MASK if SECRET_NAMES.search(name) else redact_value(value)
    return event


def redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {
            key: MASK if SECRET_NAMES.search(str(key)) else redact_value(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in value]
    return value


def redact_text(text: str) -> str:
    return URL_PASSWORD.sub(rf"\1:{MASK}@", API_KEYS.sub(MASK, text))


def redact_path(path: str) -> str:
    """Return the path of a request without its query string, and with tokens masked."""
    return PATH_SEGMENT.sub(_mask_token, path.partition("?")[0])


def _mask_token(match: re.Match[str]) -> str:
    segment = match[0]
    # Short segments with a colon are API actions, such as prompt:render.
    is_signed = len(segment) >= 24 and (":" in segment or "%3a" in segment.lower())
    looks_like_token = is_signed or len(segment) >= 32
    return MASK if looks_like_token and not UUID.fullmatch(segment) else segment
