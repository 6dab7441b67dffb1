"""Build Django database settings from DATABASE_URL, with our timeouts and pool."""

from typing import Any

import environ

SQLITE_INIT_COMMAND = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"


def build_database_config(
    url: str, *, pool_size: int, statement_ms: int, password: str = ""
) -> dict[str, Any]:
    config: dict[str, Any] = environ.Env.db_url_config(url)
    # A separate password can come from a file, and may contain characters that are not allowed in a URL.
    config["PASSWORD"] = config.get("PASSWORD") or password
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"].endswith("sqlite3"):
        options.update(build_sqlite_options())
        # A file, not memory: tests then use the same WAL and locks as the product.
        config["TEST"] = {"NAME": f"{config['NAME']}.test"}
    else:
        # Django's backend, which also sets the workspace scope of row-level security for each statement.
        config["ENGINE"] = "project.database.postgresql"
        options.update(build_postgres_options(pool_size, statement_ms))
        # Pooled connections may be dead after a server restart; without this check Django would use them.
        config["CONN_HEALTH_CHECKS"] = True
    return config


def build_sqlite_options() -> dict[str, Any]:
    # IMMEDIATE: a transaction takes the write lock at its start, so that it waits there and never fails
    # later. FULL: with NORMAL a committed row may be lost in a power failure.
    return {"init_command": SQLITE_INIT_COMMAND, "transaction_mode": "IMMEDIATE", "timeout": 10}


def build_postgres_options(pool_size: int, statement_ms: int) -> dict[str, Any]:
    limits = {
        "statement_timeout": statement_ms,
        "lock_timeout": 2_000,
        "idle_in_transaction_session_timeout": 30_000,
    }
    return {
        "pool": {"min_size": 1, "max_size": max(pool_size, 1), "timeout": 5},
        "options": " ".join(f"-c {name}={value}" for name, value in limits.items()),
        "connect_timeout": 3,
    }


def build_replica_config(url: str, *, statement_ms: int, password: str = "") -> dict[str, Any]:
    """Return the settings of a streaming replica, which is only read."""
    config = build_database_config(url, pool_size=1, statement_ms=statement_ms, password=password)
    options = config["OPTIONS"]
    # A pool would wait for a replica that is down; without one the connection is refused immediately.
    del options["pool"]
    config["CONN_MAX_AGE"] = 60
    options["connect_timeout"] = 2
    # Prevent writes even if the URL is that of the primary by mistake.
    options["options"] += " -c default_transaction_read_only=on"
    config["TEST"] = {"MIRROR": "default"}
    return config
