"""Rate limits per key and workspace: token buckets in the memory of each process."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from django.conf import settings

from personas.api.problems import Problem, ProblemError

WINDOW_SECONDS = 60
BUDGETS = ("fetch", "read", "write", "render")
# Beyond this number the least recently used buckets are dropped.
MAX_BUCKETS = 50_000


@dataclass(frozen=True)
class RateLimitStatus:
    """State of one budget after a request."""

    budget: str
    quota: int
    remaining: int
    # Seconds until the next request is allowed; 0 if this one was.
    retry_after: float

    def headers(self) -> dict[str, str]:
        refill = math.ceil((self.quota - self.remaining) * WINDOW_SECONDS / self.quota)
        return {
            "RateLimit-Policy": f'"{self.budget}";q={self.quota};w={WINDOW_SECONDS}',
            "RateLimit": f'"{self.budget}";r={self.remaining};t={refill}',
        }


class RateLimiter:
    """Token buckets by owner and budget; they start full and refill at a constant rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[tuple[str, int, str], tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, whose: str, number: int, budget: str, quota: int) -> RateLimitStatus:
        """Take one token, if there is one."""
        now, name, pace = self._clock(), (whose, number, budget), quota / WINDOW_SECONDS
        with self._lock:
            level, since = self._levels.pop(name, (float(quota), now))
            level = min(quota, level + (now - since) * pace)
            is_ours = level >= 1
            level -= is_ours
            self._levels[name] = level, now
            if len(self._levels) > MAX_BUCKETS:
                self._levels.popitem(last=False)
        return RateLimitStatus(budget, quota, int(level), 0 if is_ours else (1 - level) / pace)

    def clear(self) -> None:
        with self._lock:
            self._levels.clear()


PROCESS_LIMITER = RateLimiter()


def charge_rate_limit(
    key_id: int, workspace_id: int, budget: str, *, buckets: RateLimiter = PROCESS_LIMITER
) -> Mapping[str, str]:
    """Take one token of the key and one of the workspace; return the rate limit headers or raise 429.

    The headers describe the budget with fewer tokens.
    """
    of_key, of_workspace = get_quotas(budget)
    standing = buckets.take("key", key_id, budget, of_key)
    if not standing.retry_after:
        whole = buckets.take("workspace", workspace_id, budget, of_workspace)
        standing = whole if whole.retry_after or whole.remaining < standing.remaining else standing
    if standing.retry_after:
        raise ProblemError(rate_limit_problem(standing))
    return standing.headers()


def get_quotas(budget: str) -> tuple[int, int]:
    """Return the quotas of a key and a workspace per minute, divided by the number of web processes."""
    of_key, of_workspace = settings.DRAMATIS_RATE_LIMITS[budget]
    share = max(1, settings.DRAMATIS_WEB_PROCESSES)
    return max(1, of_key // share), max(1, of_workspace // share)


def rate_limit_problem(standing: RateLimitStatus) -> Problem:
    wait = max(1, math.ceil(standing.retry_after))
    headers = standing.headers() | {"Retry-After": str(wait)}
    return Problem(429, "rate_limited", f"Try again in {wait} s.", headers=headers)
