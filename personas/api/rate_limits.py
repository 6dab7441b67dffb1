"""Rate limits per API key, workspace and person: token buckets in the memory of each process."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

from django.conf import settings

from personas.api.problems import Problem, ProblemError
from personas.limits.persons import find_person_id, get_person_share

WINDOW_SECONDS = 60
# If there are more buckets, the least recently used one is dropped. This limits the memory per process.
MAX_BUCKETS = 50_000


RATE_LIMIT_OWNERS = {
    "key": "Rate limit of this key exceeded.",
    "workspace": "Rate limit of this workspace exceeded.",
    "person": (
        "Rate limit exceeded by the workspaces of the person that this workspace counts for. The operator "
        "sets it with DRAMATIS_PERSON_SHARE."
    ),
}


class RateLimitStatus(NamedTuple):
    """State of one token bucket after a request."""

    budget: str
    quota: int
    remaining: int
    # Seconds until a request is allowed again; 0 if this request was allowed.
    retry_after: float
    # Seconds until the bucket has another token.
    next_token: float
    # What the bucket belongs to: `key`, `workspace` or `person`.
    owner: str = "key"

    def headers(self) -> dict[str, str]:
        """Return the headers of the response. `t` is when more requests are possible, as Retry-After is.

        A client that has none left and obeys `t` must not wait until the bucket is full.
        """
        refill = math.ceil((self.quota - self.remaining) * WINDOW_SECONDS / self.quota)
        seconds = refill if self.remaining else max(1, math.ceil(self.next_token))
        return {
            "RateLimit-Policy": f'"{self.budget}";q={self.quota};w={WINDOW_SECONDS}',
            "RateLimit": f'"{self.budget}";r={self.remaining};t={seconds}',
        }


class RateLimiter:
    """Token buckets, one per owner (a key, a workspace or a person) and budget.

    A bucket starts full and refills at a constant rate of `quota` tokens per minute.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[tuple[str, int, str], tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, owner: str, owner_id: int, budget: str, quota: int) -> RateLimitStatus:
        """Take one token from a bucket, if it has one, and return the bucket's state."""
        now, bucket, rate = self._clock(), (owner, owner_id, budget), quota / WINDOW_SECONDS
        with self._lock:
            level, since = self._levels.pop(bucket, (float(quota), now))
            level = min(quota, level + (now - since) * rate)
            is_allowed = level >= 1
            level -= is_allowed
            self._levels[bucket] = level, now
            if len(self._levels) > MAX_BUCKETS:
                self._levels.popitem(last=False)
        next_token = (int(level) + 1 - level) / rate
        wait = 0 if is_allowed else next_token
        return RateLimitStatus(budget, quota, int(level), wait, next_token, owner)

    def clear(self) -> None:
        with self._lock:
            self._levels.clear()


PROCESS_LIMITER = RateLimiter()


def charge_rate_limit(
    key_id: int, workspace_id: int, budget: str, *, limiter: RateLimiter = PROCESS_LIMITER
) -> Mapping[str, str]:
    """Take one token from the buckets of the key, its workspace and the person that the workspace counts for.

    Raise 429 if one of them is empty. Return the rate limit headers of the response. They describe the bucket
    that has the fewest tokens left.
    """
    key_quota, workspace_quota, person_quota = get_quotas(budget)
    status = limiter.take("key", key_id, budget, key_quota)
    if not status.retry_after:
        status = min_status(status, limiter.take("workspace", workspace_id, budget, workspace_quota))
    if not status.retry_after and (person_id := find_person_id(workspace_id)) is not None:
        status = min_status(status, limiter.take("person", person_id, budget, person_quota))
    if status.retry_after:
        raise ProblemError(rate_limit_problem(status))
    return status.headers()


def min_status(first: RateLimitStatus, second: RateLimitStatus) -> RateLimitStatus:
    """Return the bucket that has fewer tokens left."""
    return second if second.retry_after or second.remaining < first.remaining else first


def get_quotas(budget: str) -> tuple[int, int, int]:
    """Return how many requests per minute this process allows per key, per workspace and per person.

    The configured limits apply to the whole server, so they are divided by the number of web processes.
    """
    key_quota, workspace_quota = settings.DRAMATIS_RATE_LIMITS[budget]
    processes = max(1, settings.DRAMATIS_WEB_PROCESSES)
    quotas = (key_quota, workspace_quota, workspace_quota * get_person_share())
    key, workspace, person = (max(1, quota // processes) for quota in quotas)
    return key, workspace, person


def rate_limit_problem(status: RateLimitStatus) -> Problem:
    wait = max(1, math.ceil(status.retry_after))
    headers = status.headers() | {"Retry-After": str(wait)}
    detail = f"{RATE_LIMIT_OWNERS[status.owner]} Try again in {wait} s."
    return Problem(429, "rate_limited", detail, headers=headers)
