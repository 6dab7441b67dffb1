"""A copy of a prompt and how long it may be used without asking."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from dramatis_client.answers import Answer
from dramatis_client.prompts import Prompt, read_prompt

# What the server says as well; used when something on the way has taken the header out.
MAX_AGE = 30
STALE_WHILE_REVALIDATE = 300
# While the server is away it is asked this often, and callers do not wait for it.
PAUSE_AFTER_FAILURE = 5.0
LONGEST_PAUSE = 60.0
# Words that were filled in for a call, such as the time, are fetched anew after this long.
SLOTS_LAST = 3_600.0


class Name(NamedTuple):
    """Which prompt."""

    agent: str
    channel: str
    label: str


class Use(Enum):
    """What may be done with a copy now."""

    AS_IT_IS = "as it is"
    WHILE_ASKING = "while asking"
    ONLY_IF_AWAY = "only if away"


@dataclass(frozen=True)
class Copy:
    """A prompt with the bytes it was read from; moments are seconds since 1970."""

    prompt: Prompt
    content: bytes
    fetched_at: float
    checked_at: float
    max_age: float = MAX_AGE
    stale_for: float = STALE_WHILE_REVALIDATE
    # Since it was last checked the server could not be reached; not asked again before.
    retry_at: float = 0.0

    def use(self, now: float) -> Use:
        if self.is_fresh(now) or 0 < self.retry_at - now <= LONGEST_PAUSE:
            return Use.AS_IT_IS
        age = now - self.checked_at
        if self.retry_at or 0 <= age < self.max_age + self.stale_for:
            return Use.WHILE_ASKING
        return Use.ONLY_IF_AWAY

    def is_fresh(self, now: float) -> bool:
        """A clock that was set back makes nothing fresh."""
        return 0 <= now - self.checked_at < self.max_age

    def is_worth_confirming(self, now: float) -> bool:
        """Whether "unchanged" would do as an answer: for words of a call not for ever."""
        return not self.prompt.has_slots or 0 <= now - self.fetched_at < SLOTS_LAST

    def handed(self, now: float) -> Prompt:
        return replace(self.prompt, is_stale=not self.is_fresh(now))

    def confirmed(self, answer: Answer, now: float) -> "Copy":
        max_age, stale_for = _caching(answer)
        return replace(self, checked_at=now, retry_at=0.0, max_age=max_age, stale_for=stale_for)

    def after_failure(self, now: float, retry_after: float | None) -> "Copy":
        pause = min(max(PAUSE_AFTER_FAILURE, retry_after or 0.0), LONGEST_PAUSE)
        return replace(self, retry_at=now + pause)


def copy_of(answer: Answer, now: float) -> Copy:
    prompt = read_prompt(answer.content, answer.headers.get("etag", ""), moment(now))
    return Copy(prompt, answer.content, now, now, *_caching(answer))


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _caching(answer: Answer) -> tuple[float, float]:
    said = answer.caching
    stale_for = said.get("stale-while-revalidate", STALE_WHILE_REVALIDATE)
    return said.get("max-age", MAX_AGE), stale_for
