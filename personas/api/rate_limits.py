"""How much a key and a workspace may ask for: buckets in the memory of the process, nothing on the wire."""

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
# Buckets of callers long gone are dropped first.
MAX_BUCKETS = 50_000


@dataclass(frozen=True)
class RateLimitStatus:
    """How one budget stands after a call."""

    budget: str
    quota: int
    left: int
    # Seconds until a call fits again; 0 while one does.
    wait: float

    def headers(self) -> dict[str, str]:
        refill = math.ceil((self.quota - self.left) * WINDOW_SECONDS / self.quota)
        return {
            "RateLimit-Policy": f'"{self.budget}";q={self.quota};w={WINDOW_SECONDS}',
            "RateLimit": f'"{self.budget}";r={self.left};t={refill}',
        }


class RateLimiter:
    """Token buckets by caller and budget; full at first, refilled evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[tuple[str, int, str], tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, whose: str, number: int, budget: str, quota: int) -> RateLimitStatus:
        """Take one call out; when none is left, nothing is taken."""
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

    def empty(self) -> None:
        with self._lock:
            self._levels.clear()


PROCESS_LIMITER = RateLimiter()


def charge_rate_limit(
    key_id: int, workspace_id: int, budget: str, *, buckets: RateLimiter = PROCESS_LIMITER
) -> Mapping[str, str]:
    """The headers that say what is left; a problem when a budget of the key or the workspace is used up."""
    of_key, of_workspace = get_quotas(budget)
    standing = buckets.take("key", key_id, budget, of_key)
    if not standing.wait:
        whole = buckets.take("workspace", workspace_id, budget, of_workspace)
        standing = whole if whole.wait or whole.left < standing.left else standing
    if standing.wait:
        raise ProblemError(rate_limit_problem(standing))
    return standing.headers()


def get_quotas(budget: str) -> tuple[int, int]:
    """Calls a minute for this process: the whole is shared out evenly among the web processes."""
    of_key, of_workspace = settings.DRAMATIS_RATE_LIMITS[budget]
    share = max(1, settings.DRAMATIS_WEB_PROCESSES)
    return max(1, of_key // share), max(1, of_workspace // share)


def rate_limit_problem(standing: RateLimitStatus) -> Problem:
    wait = max(1, math.ceil(standing.wait))
    headers = standing.headers() | {"Retry-After": str(wait)}
    return Problem(429, "rate_limited", f"Try again in {wait} s.", headers=headers)
