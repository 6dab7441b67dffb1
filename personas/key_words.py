"""Says in words what a key is for and how it stands."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from personas.key_scopes import APPROVE, FETCH, MANAGE, READ, RENDER, VERBS, WRITE, verbs_of

# As a form offers them.
VERB_CHOICES = (
    (FETCH, "Fetch prompts"),
    (RENDER, "Render prompts"),
    (READ, "Read records"),
    (WRITE, "Write"),
    (APPROVE, "Approve (admin keys)"),
    (MANAGE, "Manage (admin keys)"),
)
VERB_HELP = (
    "To render is to fetch with the facts of a call. A bot writes its own things only: it proposes memories, "
    "ticks steps, pushes files; an admin key writes what its maker may edit. To manage is to see to sources "
    "and keys."
)
SHOWN = 3
SOON = timedelta(days=14)
ACTIVE, SOON_OVER, EXPIRED, REVOKED = "Active", "Ends soon", "Expired", "Revoked"
TONES = {ACTIVE: "success", SOON_OVER: "warning", EXPIRED: "neutral", REVOKED: "error"}


def verbs_in_words(scopes: Mapping[str, Any], kind: str) -> str:
    """“Fetch, render”; “Everything” when nothing that its kind could do is left out."""
    verbs = verbs_of(scopes, kind)
    if verbs == verbs_of({}, kind):
        return "Everything"
    return ", ".join(verb for verb in VERBS if verb in verbs).capitalize() or "Nothing"


def limits_in_words(scopes: Mapping[str, Any]) -> list[str]:
    """What it is limited to, a line for each dimension that is; no line means no limit."""
    said = [(name, scopes.get(f"{name}s")) for name in ("agent", "channel", "label")]
    return [_limit(name, words) for name, words in said if isinstance(words, list) and words]


def _limit(name: str, words: Sequence[str]) -> str:
    more = len(words) - SHOWN
    listed = ", ".join(words[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"{name.capitalize()}{'s' if len(words) > 1 else ''} {listed}"


def state_of(expires_at: datetime, revoked_at: datetime | None, now: datetime) -> str:
    if revoked_at is not None:
        return REVOKED
    if expires_at <= now:
        return EXPIRED
    return SOON_OVER if expires_at - now <= SOON else ACTIVE
