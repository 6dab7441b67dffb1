"""The headers Accept and If-None-Match: which form a caller takes, and which versions it has already."""

import re
from functools import lru_cache

from personas.api.etags import TAG

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
