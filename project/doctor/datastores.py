"""Checks of `manage.py doctor` for database and Redis, such as version, migrations, durability and clock."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from project.doctor.results import DoctorFinding, report_failure, report_ok, report_warning
from project.redis_client import connect_redis
from prompts.evidence.ledger.partitions import (
    add_months,
    get_month_start,
    has_partition_rows,
    is_ledger_partitioned,
    list_partitions,
    list_unprotected_partitions,
)

MIN_POSTGRES_VERSION, MIN_SQLITE_VERSION = 15, (3, 40)
MIN_REDIS_VERSION, MIN_VALKEY_VERSION = 6, 7
CLOCK_SKEW_WARNING, CLOCK_SKEW_FAILURE = timedelta(seconds=2), timedelta(seconds=30)
LEDGER_MONTHS_ADVICE = (
    "Check that worker and beat are running, or run manage.py migrate as the owner of the tables."
)
# PostgreSQL settings that must be on for committed rows to survive a crash.
DURABILITY_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit")


def check_database() -> Iterator[DoctorFinding]:
    yield check_database_version()
    yield check_migrations()
    if connection.vendor == "postgresql":
        yield check_durability()
        yield check_clock_skew()
    if is_ledger_partitioned():
        yield check_ledger_months()


def fetch_value(query: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def check_database_version() -> DoctorFinding:
    if connection.vendor == "postgresql":
        version = str(fetch_value("SHOW server_version"))
        is_old, oldest = int(version.partition(".")[0]) < MIN_POSTGRES_VERSION, str(MIN_POSTGRES_VERSION)
        name = f"PostgreSQL {version}"
    else:
        version = str(fetch_value("SELECT sqlite_version()"))
        is_old = tuple(int(part) for part in version.split(".")[:2]) < MIN_SQLITE_VERSION
        name, oldest = f"SQLite {version}", ".".join(map(str, MIN_SQLITE_VERSION))
    if is_old:
        return report_failure("database", f"{name} responds.", f"Upgrade to {oldest} or newer.")
    if connection.vendor == "sqlite" and settings.PRODUCTION:
        return report_warning(
            "database", f"{name} responds.", "Use PostgreSQL for several processes or machines."
        )
    return report_ok("database", f"{name} responds.")


def check_migrations() -> DoctorFinding:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        return report_failure("migrations", f"{len(pending)} are not applied.", "Run manage.py migrate.")
    return report_ok("migrations", "All are applied.")


def check_durability() -> DoctorFinding:
    off = [name for name in DURABILITY_SETTINGS if fetch_value(f"SHOW {name}") == "off"]
    if off:
        return report_failure(
            "durability",
            f"{', '.join(off)} is off: a power failure can lose committed data.",
            ("Turn it on in the PostgreSQL settings."),
        )
    return report_ok("durability", "Committed data survives a power failure.")


def check_clock_skew() -> DoctorFinding:
    """Compare the clock of this machine with that of the database server.

    The server reads its clock about halfway between sending the query and receiving the result.
    """
    before = timezone.now()
    database_time: datetime = fetch_value("SELECT clock_timestamp()")
    after = timezone.now()
    skew = abs(database_time - (before + (after - before) / 2))
    message = f"The clocks of this machine and the database differ by {skew.total_seconds():.3f} s."
    if skew > CLOCK_SKEW_FAILURE:
        return report_failure(
            "clocks",
            message,
            ("Synchronize the clocks with NTP. Leases, expiry and ledger times depend on them."),
        )
    if skew > CLOCK_SKEW_WARNING:
        return report_warning("clocks", message, "Synchronize the clocks of all machines with NTP.")
    return report_ok("clocks", message)


def check_ledger_months() -> DoctorFinding:
    """Check that the ledger has a partition for the next month.

    Also check that all partitions have their triggers and row-level security, and that the default partition
    is empty.
    """
    name, partitions = "ledger months", list_partitions()
    if names := list_unprotected_partitions():
        return report_failure(
            name,
            f"Not protected: {', '.join(names)}.",
            ("Restore their triggers and row-level security, then run manage.py verify_chain."),
        )
    month = add_months(get_month_start(timezone.now()))
    if not any(partition.contains(month) for partition in partitions):
        return report_warning(
            name,
            f"There is no table for {month:%Y-%m}.",
            f"{LEDGER_MONTHS_ADVICE} Until then, rows are stored in a default table.",
        )
    if any(partition.is_default and has_partition_rows(partition) for partition in partitions):
        return report_warning(
            name,
            "Some rows are in no monthly table.",
            f"{LEDGER_MONTHS_ADVICE} The rows are then moved to their months.",
        )
    return report_ok(name, f"Tables: {len(partitions)}; the next month has one.")


# --- Redis ---------------------------------------------------------------------------------------------


def check_redis() -> Iterator[DoctorFinding]:
    with connect_redis(settings.REDIS_URL) as client:
        info: Mapping[str, Any] = client.info()
    yield check_redis_version(info)
    yield check_redis_persistence(info)
    yield check_redis_eviction(info)


def check_redis_version(info: Mapping[str, Any]) -> DoctorFinding:
    is_valkey = "valkey_version" in info
    name, oldest = ("Valkey", MIN_VALKEY_VERSION) if is_valkey else ("Redis", MIN_REDIS_VERSION)
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    message = f"{name} {version} responds."
    if int(version.partition(".")[0]) < oldest:
        return report_warning("redis", message, f"Upgrade to {name} {oldest} or newer.")
    return report_ok("redis", message)


def check_redis_persistence(info: Mapping[str, Any]) -> DoctorFinding:
    if not int(info.get("aof_enabled", 0)):
        return report_warning(
            "redis file",
            "The append-only file is disabled.",
            "Set appendonly yes. Until then, a restart delays jobs.",
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        return report_failure("redis file", "Its last write failed.", "Free disk space for Redis.")
    return report_ok("redis file", "Waiting jobs survive a restart.")


def check_redis_eviction(info: Mapping[str, Any]) -> DoctorFinding:
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        return report_failure(
            "redis memory",
            f"With {policy}, Redis evicts jobs when memory is full.",
            "Set maxmemory-policy noeviction.",
        )
    return report_ok("redis memory", "Redis never evicts jobs.")
