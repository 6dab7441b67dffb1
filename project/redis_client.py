"""Redis client with short timeouts, and conversion of REDIS_URL to the formats of Celery and redis-py."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import redis

# Timeouts in seconds.
CONNECT_TIMEOUT = 0.2
READ_TIMEOUT = 0.5


def build_celery_url(url: str) -> str:
    """Return the URL for Celery, which uses `redis+socket` and `virtual_host` instead of `unix` and `db`."""
    if not url.startswith("unix://"):
        return url
    return "redis+socket://" + url.removeprefix("unix://").replace("?db=", "?virtual_host=")


def build_client_url(url: str) -> str:
    if not url.startswith("redis+socket://"):
        return url
    return "unix://" + url.removeprefix("redis+socket://").replace("?virtual_host=", "?db=")


def connect_redis(url: str, **options: Any) -> "redis.Redis":
    """Return a client with short timeouts and no retries."""
    # Imported here because the settings import this module, and importing redis takes a third of a second.
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    limits: dict[str, Any] = {"socket_timeout": READ_TIMEOUT, "socket_connect_timeout": CONNECT_TIMEOUT}
    return redis.Redis.from_url(build_client_url(url), retry=Retry(NoBackoff(), 0), **(limits | options))
