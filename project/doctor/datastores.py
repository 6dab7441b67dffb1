"""The database and Redis: reached, new enough, and set up so that nothing is lost."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from project.doctor.results import Finding, fail, ok, warn
from project.redis_client import connect
from prompts.ledger.partitions import has_rows, is_by_month, later, ledger_parts, month_of, unguarded_parts

OLDEST_POSTGRES, OLDEST_SQLITE = 15, (3, 40)
OLDEST_REDIS, OLDEST_VALKEY = 6, 7
SLIGHT, GREAT = timedelta(seconds=2), timedelta(seconds=30)
MAKE = "See that worker and beat run, or run manage.py migrate as the owner of the tables."
# What must be on for an answer to mean that the row is on the disk.
DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


def look_at_database() -> Iterator[Finding]:
    yield version()
    yield migrations()
    if connection.vendor == "postgresql":
        yield durability()
        yield clock()
    if is_by_month():
        yield ledger_months()


def one(question: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


def version() -> Finding:
    if connection.vendor == "postgresql":
        said = str(one("SHOW server_version"))
        is_old, oldest = int(said.partition(".")[0]) < OLDEST_POSTGRES, str(OLDEST_POSTGRES)
        name = f"PostgreSQL {said}"
    else:
        said = str(one("SELECT sqlite_version()"))
        is_old = tuple(int(part) for part in said.split(".")[:2]) < OLDEST_SQLITE
        name, oldest = f"SQLite {said}", ".".join(map(str, OLDEST_SQLITE))
    if is_old:
        return fail("database", f"{name} answers.", f"Use {oldest} or newer.")
    if connection.vendor == "sqlite" and settings.PRODUCTION:
        return warn("database", f"{name} answers.", "For several processes or machines use PostgreSQL.")
    return ok("database", f"{name} answers.")


def migrations() -> Finding:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        return fail("migrations", f"{len(pending)} are not applied.", "Run manage.py migrate.")
    return ok("migrations", "All are applied.")


def durability() -> Finding:
    off = [name for name in DURABLE if one(f"SHOW {name}") == "off"]
    if off:
        return fail("durability", f"{', '.join(off)} is off: a power cut loses answers given.", "Turn it on.")
    return ok("durability", "What is committed outlives a power cut.")


def clock() -> Finding:
    """Ours against the database's, less half of the way there and back."""
    before = timezone.now()
    theirs: datetime = one("SELECT clock_timestamp()")
    after = timezone.now()
    apart = abs(theirs - (before + (after - before) / 2))
    words = f"Ours and the database's are {apart.total_seconds():.3f} s apart."
    if apart > GREAT:
        return fail(
            "clocks", words, "Set the clocks by NTP: leases, expiries and the ledger's times lean on it."
        )
    if apart > SLIGHT:
        return warn("clocks", words, "Set the clocks of all machines by NTP.")
    return ok("clocks", words)


def ledger_months() -> Finding:
    """Every fetch finds a table for its row; better that of its month, and always a guarded one."""
    name, parts = "ledger months", ledger_parts()
    if names := unguarded_parts():
        return fail(
            name, f"{', '.join(names)}: not guarded.", "Put triggers and row security back; verify_chain."
        )
    month = later(month_of(timezone.now()))
    if not any(part.holds(month) for part in parts):
        return warn(name, f"There is no table for {month:%Y-%m}.", f"{MAKE} Rows are kept apart meanwhile.")
    if any(part.is_default and has_rows(part) for part in parts):
        return warn(name, "Some rows lie in no month's table.", f"{MAKE} Rows are moved to their months.")
    return ok(name, f"Tables: {len(parts)}; the next month has one.")


# --- Redis ---------------------------------------------------------------------------------------------


def look_at_redis() -> Iterator[Finding]:
    with connect(settings.REDIS_URL) as client:
        told: Mapping[str, Any] = client.info()
    yield redis_version(told)
    yield append_only(told)
    yield eviction(told)


def redis_version(told: Mapping[str, Any]) -> Finding:
    is_valkey = "valkey_version" in told
    name, oldest = ("Valkey", OLDEST_VALKEY) if is_valkey else ("Redis", OLDEST_REDIS)
    said = str(told.get("valkey_version") or told.get("redis_version", "0"))
    words = f"{name} {said} answers."
    if int(said.partition(".")[0]) < oldest:
        return warn("redis", words, f"Use {name} {oldest} or newer.")
    return ok("redis", words)


def append_only(told: Mapping[str, Any]) -> Finding:
    if not int(told.get("aof_enabled", 0)):
        return warn(
            "redis file",
            "It keeps no append-only file.",
            "Set appendonly yes; until then a restart delays jobs.",
        )
    if told.get("aof_last_write_status", "ok") != "ok":
        return fail("redis file", "Its last write failed.", "Give Redis room on its disk.")
    return ok("redis file", "Waiting jobs outlive a restart.")


def eviction(told: Mapping[str, Any]) -> Finding:
    policy = str(told.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        return fail("redis memory", f"With {policy} it throws jobs away.", "Set maxmemory-policy noeviction.")
    return ok("redis memory", "It throws nothing away.")
