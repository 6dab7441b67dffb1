"""The address of a fetch → what is wanted; each parameter that does not fit is named."""

import re
from datetime import datetime
from functools import lru_cache
from urllib.parse import parse_qsl

from personas.api.authentication import refuse_key_in_address
from personas.api.etags import TAG
from personas.api.exception_handler import invalid
from personas.api.problems import FieldError, Problem, ProblemError
from prompts.models import PRODUCTION
from prompts.serving import Wanted

KNOWN = ("channel", "label", "at")
MOST = 20
MOMENT = "Name a moment with its offset from UTC, such as 2026-03-07T14:55:05Z."
# A plus sign that was not escaped comes as a space.
LOST_PLUS = re.compile(r" (\d\d:?\d\d)$")


@lru_cache(maxsize=2_000)
def wanted_by(agent: str, query: str) -> Wanted:
    """The same addresses come again and again, and are read once; refusals are not kept."""
    refuse_key_in_address(f"{agent}?{query}")
    said = values_in(query)
    at = read_moment(said["at"]) if "at" in said else None
    return Wanted(agent, said["channel"], said.get("label", PRODUCTION), at)


def values_in(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST)
    except ValueError:
        raise ProblemError(
            Problem(400, "bad_request", f"An address has at most {MOST} parameters.")
        ) from None
    said = dict(pairs)
    names = [name for name, _ in pairs]
    wrong = [refused("There is no such parameter.", name) for name in said if name not in KNOWN]
    wrong += [refused("This stands here more than once.", name) for name in said if names.count(name) > 1]
    wrong += [refused("This is needed.", "channel")] if not said.get("channel") else []
    if wrong:
        raise ProblemError(invalid(wrong))
    return said


def read_moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(LOST_PLUS.sub(r"+\1", text))
    except ValueError:
        at = None
    # The first and last days have no place in every timezone.
    if at is None or at.tzinfo is None or not 1 < at.year < 9_999:
        raise ProblemError(invalid([refused(MOMENT, "at")]))
    return at


def refused(words: str, parameter: str) -> FieldError:
    return FieldError(words, parameter=parameter[:80])


# What is asked for most in turn; of two that are liked alike the first is given.
TYPES = ("application/json", "text/markdown")
QUALITY = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
# The nearer a range names a type, the more it counts for that type.
NEARNESS = {"*/*": 0, "application/*": 1, "text/*": 1, "application/json": 2, "text/markdown": 2}


@lru_cache(maxsize=500)
def chosen_type(accept: str) -> str:
    """The type to answer with; empty when the caller takes neither."""
    if not accept.strip():
        return TYPES[0]
    ranges = ranges_in(accept)
    liked = [(*liking(kind, ranges), -place) for place, kind in enumerate(TYPES)]
    best = max(liked)
    return TYPES[-best[2]] if best[0] > 0 else ""


def ranges_in(accept: str) -> dict[str, float]:
    """Each range with its quality; what cannot be read is passed over."""
    found: dict[str, float] = {}
    for said in accept.split(","):
        name, *more = [part.strip().lower() for part in said.split(";")]
        quality = next((part[2:].strip() for part in more if part.startswith("q=")), "1")
        if name in NEARNESS and QUALITY.fullmatch(quality):
            found[name] = float(quality)
    return found


def liking(kind: str, ranges: dict[str, float]) -> tuple[float, int]:
    """How much a type is liked, by the nearest range that speaks of it."""
    family = f"{kind.partition('/')[0]}/*"
    nearest = next((name for name in (kind, family, "*/*") if name in ranges), None)
    return (ranges[nearest], NEARNESS[nearest]) if nearest else (0.0, 0)


@lru_cache(maxsize=500)
def known_versions(if_none_match: str) -> tuple[str, ...]:
    """The digests in the header, compared weakly; a star stands for any."""
    if if_none_match.strip() == "*":
        return ("*",)
    return tuple(tag for _, tag in TAG.findall(if_none_match) if tag != "*")
