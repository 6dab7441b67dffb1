"""A cached prompt and how long it may be used without asking the server."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from dramatis_client.problems import DramatisError, Problem
from dramatis_client.prompts import Prompt, parse_prompt
from dramatis_client.responses import Response

# The server's own values, used if a proxy has removed the Cache-Control header.
MAX_AGE = 30
STALE_WHILE_REVALIDATE = 300
# Seconds between requests while the server is unavailable; callers do not wait for them.
RETRY_DELAY = 5.0
MAX_RETRY_DELAY = 60.0
# Prompts with slot values, such as the time, are downloaded again after an hour, even for the same version.
SLOTS_MAX_AGE = 3_600.0


class PromptKey(NamedTuple):
    """Cache key of a prompt."""

    agent: str
    channel: str
    label: str
    version: int | None = None

    @property
    def names(self) -> list[str]:
        """The parts as text: of the file name, and of what is signed."""
        parts = (self.agent, self.channel, self.label, self.version)
        return [str(part) for part in parts if part is not None]


class CacheAction(Enum):
    """What to do with a cache entry when its prompt is requested."""

    SERVE = "serve"
    SERVE_AND_REFRESH = "serve and refresh"
    # The entry is served only if the server is unavailable (stale-if-error).
    FETCH = "fetch"


@dataclass(frozen=True)
class CacheEntry:
    """A prompt with the bytes it was parsed from; timestamps are Unix seconds."""

    prompt: Prompt
    content: bytes
    fetched_at: float
    checked_at: float
    max_age: float = MAX_AGE
    stale_for: float = STALE_WHILE_REVALIDATE
    # Set after a failed request: the server is not asked again before this time.
    retry_at: float = 0.0

    def choose_action(self, now: float, ttl: float | None = None) -> CacheAction:
        """Choose by the age of the entry. `ttl` replaces max-age; 0 asks the server at every call."""
        if self.is_fresh(now, ttl) or is_before_retry(self.retry_at, now):
            return CacheAction.SERVE
        if ttl == 0:
            return CacheAction.FETCH
        max_age = self.max_age if ttl is None else ttl
        if self.retry_at or 0 <= now - self.checked_at < max_age + self.stale_for:
            return CacheAction.SERVE_AND_REFRESH
        return CacheAction.FETCH

    def is_fresh(self, now: float, ttl: float | None = None) -> bool:
        """Return whether max-age has not passed; a clock that was set back makes no entry fresh."""
        return 0 <= now - self.checked_at < (self.max_age if ttl is None else ttl)

    def can_revalidate(self, now: float) -> bool:
        """Return whether a 304 is good enough; old slot values, such as the time, are downloaded again."""
        return not self.prompt.has_slots or 0 <= now - self.fetched_at < SLOTS_MAX_AGE

    def to_prompt(self, now: float, ttl: float | None = None) -> Prompt:
        return replace(self.prompt, is_stale=not self.is_fresh(now, ttl))

    def revalidate(self, response: Response, now: float) -> "CacheEntry":
        max_age, stale_for = _cache_lifetimes(response)
        return replace(self, checked_at=now, retry_at=0.0, max_age=max_age, stale_for=stale_for)

    def delay_retry(self, retry_at: float) -> "CacheEntry":
        return replace(self, retry_at=retry_at)


def create_entry(response: Response, now: float) -> CacheEntry:
    prompt = parse_prompt(response.content, response.headers.get("etag", ""), to_datetime(now))
    return CacheEntry(prompt, response.content, now, now, *_cache_lifetimes(response))


def compute_retry_time(now: float, error: DramatisError) -> float:
    """Return when the server may be asked again after this error."""
    retry_after = error.retry_after if isinstance(error, Problem) else None
    return now + min(max(RETRY_DELAY, retry_after or 0.0), MAX_RETRY_DELAY)


def is_before_retry(retry_at: float, now: float) -> bool:
    """Return whether it is too early to ask again. A clock that was set back does not extend the delay."""
    return 0 < retry_at - now <= MAX_RETRY_DELAY


def to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _cache_lifetimes(response: Response) -> tuple[float, float]:
    directives = response.cache_control
    stale_for = directives.get("stale-while-revalidate", STALE_WHILE_REVALIDATE)
    return directives.get("max-age", MAX_AGE), stale_for
