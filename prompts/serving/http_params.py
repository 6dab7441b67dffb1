"""Parse the query string and the headers Accept, If-None-Match and traceparent of a fetch."""

import re
from datetime import datetime
from functools import lru_cache
from urllib.parse import parse_qsl

from core.text.timestamps import parse_timestamp
from personas.api.authentication import check_no_key_in_url
from personas.api.etags import ETAG_PATTERN
from personas.api.exception_handler import validation_problem
from personas.api.problems import FieldError, Problem, ProblemError
from prompts.models import PRODUCTION
from prompts.serving.request import PromptRequest

ALLOWED_PARAMETERS = ("label", "at", "version")
MAX_VERSION = 2**31 - 1
MAX_PARAMETERS = 20
TIMESTAMP_HINT = "Must be a time with a UTC offset, for example 2026-03-07T14:55:05Z."
# URL decoding turns an unescaped plus sign of a UTC offset into a space: `12:00:00 02:00`.
UNESCAPED_PLUS = re.compile(r" (\d\d:?\d\d)$")
# W3C Trace Context: version, trace id, parent id and flags.
TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
TRACEPARENT_LENGTH = 55


@lru_cache(maxsize=2_000)
def parse_prompt_request(agent: str, channel: str, query: str) -> PromptRequest:
    """Parse path and query string of a fetch. Results are cached, because bots repeat the same URLs."""
    check_no_key_in_url(f"{agent}/{channel}?{query}")
    parameters = parse_query_values(query)
    label = parameters.get("label", PRODUCTION)
    at = parse_at_parameter(parameters["at"]) if "at" in parameters else None
    version = parse_version_parameter(parameters["version"]) if "version" in parameters else None
    return PromptRequest(agent, channel, label, at, version=version)


def parse_query_values(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise ProblemError(
            Problem(400, "bad_request", f"A URL can have at most {MAX_PARAMETERS} parameters.")
        ) from None
    parameters = dict(pairs)
    names = [name for name, _ in pairs]
    errors = [
        build_parameter_error("Unknown parameter.", name)
        for name in parameters
        if name not in ALLOWED_PARAMETERS
    ]
    errors += [
        build_parameter_error("Send this parameter only once.", name)
        for name in parameters
        if names.count(name) > 1
    ]
    if errors:
        raise ProblemError(validation_problem(errors))
    return parameters


def parse_version_parameter(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 10 and 0 < int(text) <= MAX_VERSION:
        return int(text)
    message = "Must be a version number, for example 3."
    raise ProblemError(validation_problem([build_parameter_error(message, "version")]))


def parse_at_parameter(text: str) -> datetime:
    try:
        return parse_timestamp(UNESCAPED_PLUS.sub(r"+\1", text))
    except ValueError:
        raise ProblemError(validation_problem([build_parameter_error(TIMESTAMP_HINT, "at")])) from None


def build_parameter_error(message: str, parameter: str) -> FieldError:
    return FieldError(message, parameter=parameter[:80])


# In order of preference: if the client accepts two media types equally, the first is served.
PROMPT_TYPES = ("application/json", "text/markdown")
TEXT_TYPES = ("text/markdown", "text/plain")
QUALITY_PATTERN = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


@lru_cache(maxsize=500)
def negotiate_content_type(accept: str, offered: tuple[str, ...]) -> str:
    """Choose a response type by content negotiation. Return "" if the client accepts none of them."""
    if not accept.strip():
        return offered[0]
    ranges = parse_accept_ranges(accept)
    best = max((*get_type_quality(kind, ranges), -index) for index, kind in enumerate(offered))
    return offered[-best[2]] if best[0] > 0 else ""


def parse_accept_ranges(accept: str) -> dict[str, float]:
    """Return the quality of each media range in the Accept header. Invalid ranges are ignored."""
    ranges: dict[str, float] = {}
    for entry in accept.split(","):
        name, *options = [part.strip().lower() for part in entry.split(";")]
        quality = next((part[2:].strip() for part in options if part.startswith("q=")), "1")
        if QUALITY_PATTERN.fullmatch(quality):
            ranges[name] = float(quality)
    return ranges


def get_type_quality(kind: str, ranges: dict[str, float]) -> tuple[float, int]:
    """Return quality and specificity of the most specific media range that matches the content type.

    A more specific media range takes precedence over a less specific one (RFC 9110, section 12.5.1).
    """
    matching = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    return next(((ranges[name], -index) for index, name in enumerate(matching) if name in ranges), (0.0, 0))


@lru_cache(maxsize=500)
def parse_if_none_match(if_none_match: str) -> tuple[str, ...]:
    """Return the digests in If-None-Match. Weak and strong ETags are equal here; `*` matches any version."""
    if if_none_match.strip() == "*":
        return ("*",)
    return tuple(tag for _, tag in ETAG_PATTERN.findall(if_none_match) if tag != "*")


def parse_traceparent(header: str) -> str:
    """Return the header traceparent, or an empty string if it is missing or invalid.

    Invalid ones are ignored, as W3C Trace Context requires. Versions after 00 may have further fields, which
    are cut off.
    """
    if not header:
        return ""
    start, rest = header[:TRACEPARENT_LENGTH], header[TRACEPARENT_LENGTH:]
    if not TRACEPARENT.fullmatch(start) or (rest and (start.startswith("00") or rest[0] != "-")):
        return ""
    return start
