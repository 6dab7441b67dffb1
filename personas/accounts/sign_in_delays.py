"""Growing delay after failed sign-ins to one account, from any address.

From the fifth failure on, an address must wait before its next attempt. The waiting time grows with the
failures of the account and has an upper bound. It is counted per address, and an attempt during the wait
does not prolong it: an attacker elsewhere can delay the user by MAX_DELAY at most.

The counters are in Django's cache, which is a database table. They do not depend on Redis.
"""

import time
from hashlib import sha256
from math import ceil

from django.core.cache import cache

FREE_FAILURES = 5
FIRST_DELAY, MAX_DELAY = 5, 300
# The failure counter of an account is deleted this many seconds after the last failure.
COUNTER_SECONDS = 3600


def compute_delay(failures: int) -> int:
    """Return the delay in seconds after so many failures: 0, 5, 10, 20 … up to MAX_DELAY."""
    if failures < FREE_FAILURES:
        return 0
    return int(min(FIRST_DELAY * 2 ** min(failures - FREE_FAILURES, 30), MAX_DELAY))


def get_remaining_delay(login: str, address: str) -> int:
    """Return how many seconds this address must still wait before it may sign in to the account.

    The first attempt of an address starts its wait.
    """
    delay = compute_delay(cache.get(_counter_key(login), 0))
    if not delay:
        return 0
    now, key = time.time(), _wait_key(login, address)
    opens_at: float | None = cache.get(key)
    if opens_at is None:
        opens_at = now + delay
        cache.set(key, opens_at, COUNTER_SECONDS)
    return max(0, ceil(opens_at - now))


def count_sign_in_failure(login: str, address: str) -> None:
    """Count a failure. The next attempt of this address has to wait for the grown delay."""
    failures = cache.get(_counter_key(login), 0) + 1
    cache.set(_counter_key(login), failures, COUNTER_SECONDS)
    if delay := compute_delay(failures):
        cache.set(_wait_key(login, address), time.time() + delay, COUNTER_SECONDS)


def clear_sign_in_failures(login: str, address: str) -> None:
    cache.delete_many([_counter_key(login), _wait_key(login, address)])


def _counter_key(login: str) -> str:
    return f"sign-in-failures:{_digest(login)}"


def _wait_key(login: str, address: str) -> str:
    return f"sign-in-wait:{_digest(login)}:{_digest(address)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:40]
