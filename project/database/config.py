"""DATABASE_URL to a Django database with the house's limits."""

from typing import Any

import environ

SQLITE_INIT_COMMAND = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"


def build_database_config(
    url: str, *, pool_size: int, statement_ms: int, password: str = ""
) -> dict[str, Any]:
    config: dict[str, Any] = environ.Env.db_url_config(url)
    # Apart from the address it can be a file, and may hold characters that an address cannot.
    config["PASSWORD"] = config.get("PASSWORD") or password
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"].endswith("sqlite3"):
        options.update(build_sqlite_options())
        # A file, not memory: tests then meet the same WAL and locks as the product.
        config["TEST"] = {"NAME": f"{config['NAME']}.test"}
    else:
        # Django's own, which also tells row security how far a statement may look.
        config["ENGINE"] = "project.database.postgresql"
        options.update(build_postgres_options(pool_size, statement_ms))
        # A pooled connection may have died with the server; without this check Django would not notice.
        config["CONN_HEALTH_CHECKS"] = True
    return config


def build_sqlite_options() -> dict[str, Any]:
    # IMMEDIATE: a transaction that may write takes its lock at once, so it waits and never fails half-way.
    # FULL: with NORMAL a committed row may vanish when the power goes.
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
    """A copy that PostgreSQL keeps up to date by itself; it is read and never written to."""
    config = build_database_config(url, pool_size=1, statement_ms=statement_ms, password=password)
    options = config["OPTIONS"]
    # A pool would wait for a copy that is away; a connection for each thread is refused at once.
    del options["pool"]
    config["CONN_MAX_AGE"] = 60
    options["connect_timeout"] = 2
    # Whatever the address leads to, the database itself by mistake even: nothing is written there.
    options["options"] += " -c default_transaction_read_only=on"
    config["TEST"] = {"MIRROR": "default"}
    return config
