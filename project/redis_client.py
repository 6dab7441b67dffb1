"""One REDIS_URL in the spellings its readers want, with time limits that a frozen server cannot stretch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import redis

CONNECT_TIMEOUT = 0.2
READ_TIMEOUT = 0.5


def build_celery_url(url: str) -> str:
    """Celery calls a Unix socket redis+socket and its database virtual_host; the client says unix and db."""
    if not url.startswith("unix://"):
        return url
    return "redis+socket://" + url.removeprefix("unix://").replace("?db=", "?virtual_host=")


def build_client_url(url: str) -> str:
    if not url.startswith("redis+socket://"):
        return url
    return "unix://" + url.removeprefix("redis+socket://").replace("?virtual_host=", "?db=")


def connect_redis(url: str, **options: Any) -> "redis.Redis":
    """A client that gives up soon and does not try again by itself."""
    # Imported here because settings need this module, and the library takes a third of a second to load.
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    limits: dict[str, Any] = {"socket_timeout": READ_TIMEOUT, "socket_connect_timeout": CONNECT_TIMEOUT}
    return redis.Redis.from_url(build_client_url(url), retry=Retry(NoBackoff(), 0), **(limits | options))
