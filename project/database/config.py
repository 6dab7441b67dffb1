"""Build Django database settings from DATABASE_URL and DATABASE_POOLED_URL, with our timeouts and pool.

DATABASE_URL leads to the server itself. DATABASE_POOLED_URL may lead to PgBouncer in transaction mode: web,
workers and beat then use it, and the commands of manage.py stay with DATABASE_URL.
"""

from typing import Any

import environ

# secure_delete: SQLite overwrites deleted and replaced values with zeros, so that erased text does not stay
# in the free space of the file.
SQLITE_INIT_COMMAND = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA secure_delete=ON;"
)


# How many seconds connections are kept: opening a file and reading its schema takes 4 ms of CPU time.
SQLITE_CONNECTION_AGE = 60
# Statements in pipelines are prepared on the server after this many executions on a connection.
PREPARE_THRESHOLD = 3
# In milliseconds.
STATEMENT_TIMEOUT, LOCK_TIMEOUT, IDLE_TRANSACTION_TIMEOUT = 5_000, 2_000, 30_000
# Keys in the settings of a pooled database: the settings of the same database without the pooler, and whether
# the pooler supports prepared statements.
DIRECT_KEY, POOLER_PREPARES_KEY = "DIRECT", "POOLER_PREPARES"


class CommandProcess:
    """Whether this process runs a command of manage.py, which needs a direct connection.

    Migrations, backups and restores change settings of their session and share snapshots. This is no
    environment variable, because `manage.py up` starts web and workers, which would inherit it.
    """

    is_command = False


def mark_command_process() -> None:
    """Let the settings, which are not loaded yet, choose DATABASE_URL."""
    CommandProcess.is_command = True


def choose_database(direct: dict[str, Any], pooled: dict[str, Any] | None) -> dict[str, Any]:
    return direct if pooled is None or CommandProcess.is_command else pooled


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
        config["CONN_MAX_AGE"] = SQLITE_CONNECTION_AGE
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
    limits = build_limits(statement_ms)
    return {
        "pool": {"min_size": 1, "max_size": max(pool_size, 1), "timeout": 5},
        "options": " ".join(f"-c {name}={value}" for name, value in limits.items()),
        "connect_timeout": 3,
        "prepare_threshold": PREPARE_THRESHOLD,
    }


def build_limits(statement_ms: int) -> dict[str, int]:
    """Return PostgreSQL's time limits, in milliseconds.

    Direct connections get them as startup options, and the role of web and workers has them too
    (`manage.py create_db_role`), because startup options do not pass a pooler.
    """
    return {
        "statement_timeout": statement_ms,
        "lock_timeout": LOCK_TIMEOUT,
        "idle_in_transaction_session_timeout": IDLE_TRANSACTION_TIMEOUT,
    }


def build_pooled_config(
    url: str, direct: dict[str, Any], *, pool_size: int, prepares: bool, password: str = ""
) -> dict[str, Any]:
    """Return the database settings for connections through a pooler in transaction mode.

    PgBouncer refuses the startup parameter `options`. Before version 1.21 it does not know prepared
    statements either: a statement may be prepared on one server connection and executed on another.
    """
    config = build_database_config(url, pool_size=pool_size, statement_ms=0, password=password)
    del config["OPTIONS"]["options"]
    config["OPTIONS"]["prepare_threshold"] = PREPARE_THRESHOLD if prepares else None
    config[POOLER_PREPARES_KEY] = prepares
    # The direct connection has no pool: only the few statements that need a session of their own use it.
    options = {name: value for name, value in direct["OPTIONS"].items() if name != "pool"}
    config[DIRECT_KEY] = {**direct, "OPTIONS": options}
    return config


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
