"""Build Django database settings from DATABASE_URL, with our timeouts and pool."""

from typing import Any

import environ

# secure_delete: SQLite overwrites deleted and replaced values with zeros, so that erased text does not stay
# in the free space of the file.
SQLITE_INIT_COMMAND = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA secure_delete=ON;"
)


# Statements of pipelines are prepared on the server after so many executions on a connection.
PREPARE_THRESHOLD = 3


def build_database_config(
    url: str, *, pool_size: int, statement_ms: int, password: str = ""
) -> dict[str, Any]:
    config: dict[str, Any] = environ.Env.db_url_config(url)
    # The password can be set separately: it can then come from a file and contain any character.
    config["PASSWORD"] = config.get("PASSWORD") or password
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"].endswith("sqlite3"):
        # Our subclass of Django's backend waits for the write lock in short steps.
        config["ENGINE"] = "core.db.sqlite_backend"
        options.update(build_sqlite_options())
        # The test database is a file and not in memory, so that tests use WAL and locks as the product does.
        config["TEST"] = {"NAME": f"{config['NAME']}.test"}
    else:
        # Our subclass of Django's backend sets the workspace scope of row-level security for each statement.
        config["ENGINE"] = "project.database.postgresql"
        options.update(build_postgres_options(pool_size, statement_ms))
        # Pooled connections may be dead after a server restart; without this check Django would use them.
        config["CONN_HEALTH_CHECKS"] = True
    return config


def build_sqlite_options() -> dict[str, Any]:
    # IMMEDIATE: a transaction takes the write lock at its start. It waits there for other writers and cannot
    # fail later because of them. synchronous=FULL: with NORMAL a power failure may lose committed rows.
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
        "prepare_threshold": PREPARE_THRESHOLD,
    }


def build_replica_config(url: str, *, statement_ms: int, password: str = "") -> dict[str, Any]:
    """Return the database settings of a read-only streaming replica."""
    config = build_database_config(url, pool_size=1, statement_ms=statement_ms, password=password)
    options = config["OPTIONS"]
    # With a pool, a query would wait for a replica that is down. Without a pool it fails immediately.
    del options["pool"]
    config["CONN_MAX_AGE"] = 60
    options["connect_timeout"] = 2
    # Prevent writes even if the replica URL names the primary by mistake.
    options["options"] += " -c default_transaction_read_only=on"
    config["TEST"] = {"MIRROR": "default"}
    return config
