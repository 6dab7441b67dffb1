"""The address of a fetch → what is wanted; each parameter that does not fit is named."""

import re
from datetime import datetime
from functools import lru_cache
from urllib.parse import parse_qsl

from personas.api.authentication import check_no_key_in_url
from personas.api.etags import ETAG_PATTERN
from personas.api.exception_handler import validation_problem
from personas.api.problems import FieldError, Problem, ProblemError
from prompts.models import PRODUCTION
from prompts.serving import PromptRequest

ALLOWED_PARAMETERS = ("channel", "label", "at")
MAX_PARAMETERS = 20
TIMESTAMP_HINT = "Name a moment with its offset from UTC, such as 2026-03-07T14:55:05Z."
# A plus sign that was not escaped comes as a space.
UNESCAPED_PLUS = re.compile(r" (\d\d:?\d\d)$")


@lru_cache(maxsize=2_000)
def parse_prompt_request(agent: str, query: str) -> PromptRequest:
    """The same addresses come again and again, and are read once; refusals are not kept."""
    check_no_key_in_url(f"{agent}?{query}")
    said = parse_query_values(query)
    at = parse_at_parameter(said["at"]) if "at" in said else None
    return PromptRequest(agent, said["channel"], said.get("label", PRODUCTION), at)


def parse_query_values(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise ProblemError(
            Problem(400, "bad_request", f"An address has at most {MAX_PARAMETERS} parameters.")
        ) from None
    said = dict(pairs)
    names = [name for name, _ in pairs]
    wrong = [
        build_parameter_error("There is no such parameter.", name)
        for name in said
        if name not in ALLOWED_PARAMETERS
    ]
    wrong += [
        build_parameter_error("This stands here more than once.", name)
        for name in said
        if names.count(name) > 1
    ]
    wrong += [build_parameter_error("This is needed.", "channel")] if not said.get("channel") else []
    if wrong:
        raise ProblemError(validation_problem(wrong))
    return said


def parse_at_parameter(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(UNESCAPED_PLUS.sub(r"+\1", text))
    except ValueError:
        at = None
    # The first and last days have no place in every timezone.
    if at is None or at.tzinfo is None or not 1 < at.year < 9_999:
        raise ProblemError(validation_problem([build_parameter_error(TIMESTAMP_HINT, "at")]))
    return at


def build_parameter_error(words: str, parameter: str) -> FieldError:
    return FieldError(words, parameter=parameter[:80])


# What is asked for most in turn; of two that are liked alike the first is given.
RESPONSE_TYPES = ("application/json", "text/markdown")
QUALITY_PATTERN = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
# The nearer a range names a type, the more it counts for that type.
RANGE_SPECIFICITY = {"*/*": 0, "application/*": 1, "text/*": 1, "application/json": 2, "text/markdown": 2}


@lru_cache(maxsize=500)
def negotiate_content_type(accept: str) -> str:
    """The type to answer with; empty when the caller takes neither."""
    if not accept.strip():
        return RESPONSE_TYPES[0]
    ranges = parse_accept_ranges(accept)
    liked = [(*get_type_quality(kind, ranges), -place) for place, kind in enumerate(RESPONSE_TYPES)]
    best = max(liked)
    return RESPONSE_TYPES[-best[2]] if best[0] > 0 else ""


def parse_accept_ranges(accept: str) -> dict[str, float]:
    """Each range with its quality; what cannot be read is passed over."""
    found: dict[str, float] = {}
    for said in accept.split(","):
        name, *more = [part.strip().lower() for part in said.split(";")]
        quality = next((part[2:].strip() for part in more if part.startswith("q=")), "1")
        if name in RANGE_SPECIFICITY and QUALITY_PATTERN.fullmatch(quality):
            found[name] = float(quality)
    return found


def get_type_quality(kind: str, ranges: dict[str, float]) -> tuple[float, int]:
    """How much a type is liked, by the nearest range that speaks of it."""
    family = f"{kind.partition('/')[0]}/*"
    nearest = next((name for name in (kind, family, "*/*") if name in ranges), None)
    return (ranges[nearest], RANGE_SPECIFICITY[nearest]) if nearest else (0.0, 0)


@lru_cache(maxsize=500)
def parse_if_none_match(if_none_match: str) -> tuple[str, ...]:
    """The digests in the header, compared weakly; a star stands for any."""
    if if_none_match.strip() == "*":
        return ("*",)
    return tuple(tag for _, tag in ETAG_PATTERN.findall(if_none_match) if tag != "*")
