"""Checks of `manage.py doctor`: workers, disks, settings, read replica and row-level security."""

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import cache
from django.db import connection, connections
from django.utils import timezone

from core.db.citus_nodes import list_node_states
from core.db.replica import (
    MAX_LAG,
    PRIMARY_POSITION_SQL,
    REPLICA_ALIAS,
    REPLICA_ERRORS,
    get_replica_lag,
    get_replica_status,
)
from personas.accounts.second_factors import SecretCounts, count_factor_secrets
from personas.limits.daily_usage import get_utc_day
from personas.models import DailyStorage
from personas.webhooks.stored_secrets import count_endpoint_secrets
from project.celery import app
from project.database.rls_audit import find_unprotected_tables
from project.database.roles import is_role_restricted
from project.doctor.results import DoctorFinding, report_failure, report_ok, report_warning
from project.metrics.gauges import (
    MetricCollector,
    collect_build_queue,
    collect_refresh_queue,
)
from project.metrics.periodic import find_existing_folder
from project.tasks import HEARTBEAT_KEY, HEARTBEAT_SECONDS
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey, load_signing_key
from prompts.evidence.integrity.trusted_keys import find_trust_fault, get_trusted_keys
from prompts.proof.signing_keys import get_key_id

# A heartbeat older than three intervals is a warning. After ten intervals its cache entry expires, and a
# missing entry is a failure.
MAX_HEARTBEAT_AGE = timedelta(seconds=HEARTBEAT_SECONDS * 3)
SLOW_SECONDS, STUCK_SECONDS = 120, 900
LOW_DISK_SHARE, FULL_DISK_SHARE = 0.10, 0.03
FILES_CHECK, QUOTA_CHECK, HIGH_QUOTA_SHARE = "files", "call data", 0.8
START_WORKER_ADVICE = "Start `celery -A project worker` and one `celery -A project beat`."


QUEUES_CHECK = "queues"
START_QUEUE_ADVICE = "Start a worker without `--queues`, or one for each queue as the compose file does."
# How long to wait for the answers of workers, which usually come within milliseconds.
QUEUE_REPLY_SECONDS = 1.0


def check_workers() -> Iterator[DoctorFinding]:
    yield check_heartbeat()
    yield check_queue("build queue", collect_build_queue)
    yield check_queue("refresh queue", collect_refresh_queue)


def check_heartbeat() -> DoctorFinding:
    heartbeat = cache.get(HEARTBEAT_KEY)
    if heartbeat is None:
        return report_failure("worker", "No worker has reported for minutes.", START_WORKER_ADVICE)
    age = timezone.now() - datetime.fromisoformat(heartbeat)
    message = f"Last report {age.total_seconds():.0f} s ago."
    return (
        report_warning("worker", message, "Check the logs of worker and beat.")
        if age > MAX_HEARTBEAT_AGE
        else report_ok("worker", message)
    )


def check_queue_workers() -> Iterator[DoctorFinding]:
    """Check that each queue has a worker. Workers answer at once, also while all their processes are busy."""
    replies = app.control.inspect(timeout=QUEUE_REPLY_SECONDS).active_queues() or {}
    served = {queue["name"] for queues in replies.values() for queue in queues}
    missing = [queue.name for queue in settings.CELERY_TASK_QUEUES if queue.name not in served]
    if missing:
        message = f"No worker consumes: {', '.join(missing)}."
        yield report_failure(QUEUES_CHECK, message, START_QUEUE_ADVICE)
    else:
        yield report_ok(QUEUES_CHECK, f"Each of the {len(settings.CELERY_TASK_QUEUES)} queues has a worker.")


def check_queue(name: str, collect: MetricCollector) -> DoctorFinding:
    """Check how long the oldest entry of a queue has been waiting."""
    count, oldest = (family.samples[0].value for family in collect())
    message = f"{count:.0f} waiting, the oldest for {oldest:.0f} s."
    if oldest > STUCK_SECONDS:
        return report_failure(
            name, message, ("Check the logs of the workers: they do not start waiting jobs.")
        )
    if oldest > SLOW_SECONDS:
        return report_warning(name, message, "Start more workers if this persists.")
    return report_ok(name, message)


def check_disks() -> Iterator[DoctorFinding]:
    places = {"var disk": settings.VAR, "checkpoint disk": settings.DRAMATIS_CHECKPOINT_DIR}
    if connection.vendor == "sqlite":
        places["database disk"] = Path(str(connection.settings_dict["NAME"])).parent
    for name, place in places.items():
        yield check_disk_space(name, find_existing_folder(Path(place)))


def check_disk_space(name: str, place: Path) -> DoctorFinding:
    usage = shutil.disk_usage(place)
    share = usage.free / usage.total if usage.total else 0.0
    message = f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f} ({share:.0%})."
    if share < FULL_DISK_SHARE:
        return report_failure(
            name,
            message,
            (
                "Free disk space now. When the disk is full, fetches cannot be recorded, "
                "so no prompt is served."
            ),
        )
    return (
        report_warning(name, message, "Free disk space soon.")
        if share < LOW_DISK_SHARE
        else report_ok(name, message)
    )


def check_file_modes() -> Iterator[DoctorFinding]:
    """Check that other users of the machine cannot read the database file and our folders."""
    places = [Path(settings.VAR), Path(settings.DRAMATIS_CHECKPOINT_DIR)]
    if connection.vendor == "sqlite" and not connection.is_in_memory_db():  # type: ignore[attr-defined]
        places.append(Path(str(connection.settings_dict["NAME"])))
    open_places = [place for place in places if place.exists() and place.stat().st_mode & 0o077]
    for place in open_places:
        mode = "0700" if place.is_dir() else "0600"
        yield report_warning(
            FILES_CHECK, f"Other users can access {place}.", f"Set its mode to {mode}: chmod {mode} {place}"
        )
    if not open_places:
        yield report_ok(FILES_CHECK, "Only the owner can access the database file and folders.")


def check_call_quota() -> Iterator[DoctorFinding]:
    """Warn about workspaces that have nearly used up today's quota of call data."""
    quota: int = settings.DRAMATIS_CALL_BYTES_PER_DAY
    if not quota:
        yield report_warning(
            QUOTA_CHECK, "Calls can store an unlimited amount of data.", "Set DRAMATIS_CALL_BYTES_PER_DAY."
        )
        return
    rows = DailyStorage.unscoped.filter(day=get_utc_day(timezone.now()), size__gte=quota * HIGH_QUOTA_SHARE)
    names = sorted(rows.values_list("workspace__slug", flat=True))
    if names:
        yield report_warning(
            QUOTA_CHECK,
            f"Workspaces that have used over {HIGH_QUOTA_SHARE:.0%} of today's quota of call data: "
            f"{', '.join(names[:10])}.",
            "Find the bot that sends too much data, or raise DRAMATIS_CALL_BYTES_PER_DAY.",
        )
    else:
        yield report_ok(QUOTA_CHECK, "No workspace is near its daily quota of call data.")


MIN_SECRET_LENGTH = 50
SETTINGS_CHECK = "settings"


def check_settings() -> Iterator[DoctorFinding]:
    findings = [*check_environment_mode(), *check_public_url(), *check_access_settings()]
    yield from findings or [report_ok(SETTINGS_CHECK, "No problems found.")]
    yield check_signing_key()


def check_environment_mode() -> Iterator[DoctorFinding]:
    if not settings.PRODUCTION:
        yield report_warning(
            SETTINGS_CHECK,
            "DRAMATIS_ENV is development.",
            "Set DRAMATIS_ENV=production if other people use this installation.",
        )
    if settings.DEBUG:
        yield report_failure(SETTINGS_CHECK, "Errors are shown with source code.", "Unset DRAMATIS_DEBUG.")
    if len(settings.SECRET_KEY) < MIN_SECRET_LENGTH:
        yield report_failure(
            SETTINGS_CHECK,
            "SECRET_KEY is short.",
            ("Generate one from 64 random bytes, as shown in .env.example."),
        )


def check_public_url() -> Iterator[DoctorFinding]:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if settings.PRODUCTION and not settings.TLS:
        yield report_warning(
            SETTINGS_CHECK,
            "PUBLIC_URL is not https.",
            ("Use a TLS proxy and set PUBLIC_URL to its https URL."),
        )
    elif settings.PRODUCTION and not settings.HSTS:
        yield report_warning(
            SETTINGS_CHECK,
            "HSTS is off: browsers can fall back to http.",
            "Once https works, set DRAMATIS_HSTS=true.",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield report_failure(
            SETTINGS_CHECK,
            "ALLOWED_HOSTS accepts any host name.",
            ("List the real host names in ALLOWED_HOSTS."),
        )
    elif host not in settings.ALLOWED_HOSTS and f".{host.partition('.')[2]}" not in settings.ALLOWED_HOSTS:
        yield report_warning(
            SETTINGS_CHECK,
            f"{host} is not in ALLOWED_HOSTS.",
            ("Add it. Otherwise PUBLIC_URL does not work."),
        )


def check_access_settings() -> Iterator[DoctorFinding]:
    if settings.PRODUCTION and not settings.DRAMATIS_REQUIRE_OWNER_MFA:
        yield report_warning(
            SETTINGS_CHECK,
            "Owners are not required to use a second factor.",
            "Unset DRAMATIS_REQUIRE_OWNER_MFA.",
        )
    if settings.PRODUCTION and not (settings.DRAMATIS_METRICS_TOKEN or settings.DRAMATIS_METRICS_NETWORKS):
        yield report_warning(
            SETTINGS_CHECK, "/metrics is not accessible.", "Set DRAMATIS_METRICS_TOKEN for Prometheus."
        )


def check_signing_key() -> DoctorFinding:
    """Check the keys of checkpoints: the trusted ones, and the one that signs if this process has it."""
    name = "signing key"
    try:
        trusted = get_trusted_keys()
        if settings.PRODUCTION and not settings.DRAMATIS_SIGNING_KEY:
            ids = ", ".join(sorted(trusted))
            return report_ok(name, f"Another process signs checkpoints. Trusted keys: {ids}.")
        key = load_signing_key().public_key()
    except NoSigningKey as error:
        return report_failure(
            name,
            error.message,
            (
                "Set DRAMATIS_SIGNING_KEY to an Ed25519 key in PEM format, and add its ID to "
                "DRAMATIS_TRUSTED_KEYS."
            ),
        )
    key_id = get_key_id(key)
    if reason := find_trust_fault(trusted, key_id, key):
        return report_failure(
            name, f"Checkpoints are signed with {key_id}: {reason}.", "Add its ID to DRAMATIS_TRUSTED_KEYS."
        )
    return report_ok(name, f"Checkpoints are signed with {key_id}.")


SECRETS_CHECK, WEBHOOKS_CHECK = "second factors", "webhook secrets"


def check_second_factors() -> Iterator[DoctorFinding]:
    """Check that all second factors are encrypted, and that the configured keys decrypt them."""
    effect = "their users cannot sign in with them"
    yield from check_secret_counts(SECRETS_CHECK, count_factor_secrets(), effect)


def check_webhook_secrets() -> Iterator[DoctorFinding]:
    """Check the secrets of webhook endpoints in the same way."""
    yield from check_secret_counts(WEBHOOKS_CHECK, count_endpoint_secrets(), "their endpoints get no events")


def check_secret_counts(name: str, counts: SecretCounts, effect: str) -> Iterator[DoctorFinding]:
    if counts.unreadable:
        yield report_failure(
            name,
            f"{counts.unreadable} cannot be decrypted: {effect}.",
            "Add the key they were encrypted with to DRAMATIS_SECRETS_KEYS or SECRET_KEY_FALLBACKS.",
        )
    if counts.in_clear:
        yield report_failure(
            name, f"{counts.in_clear} are not encrypted.", "Run manage.py reencrypt_secrets."
        )
    if counts.outdated:
        yield report_warning(
            name,
            f"{counts.outdated} are encrypted with an older key.",
            "Run manage.py reencrypt_secrets before you remove that key.",
        )
    if not (counts.unreadable or counts.in_clear or counts.outdated):
        yield report_ok(name, f"{counts.current} are encrypted with the first key.")


REPLICA_CHECK = "replica"


def check_replica() -> Iterator[DoctorFinding]:
    """Check the replica, if one is configured.

    Problems are warnings and not failures, because pages are read from the primary if the replica fails.
    """
    if REPLICA_ALIAS not in connections.databases:
        return
    try:
        yield check_replica_lag()
    except REPLICA_ERRORS as error:
        yield report_warning(
            REPLICA_CHECK,
            f"The replica does not respond ({type(error).__name__}).",
            "Start it, or fix DATABASE_REPLICA_URL. Until then, all queries use the primary.",
        )


def check_replica_lag() -> DoctorFinding:
    with connection.cursor() as cursor:
        cursor.execute(PRIMARY_POSITION_SQL)
        position, _ = cursor.fetchone()
    if not get_replica_status(position)[0]:
        return report_warning(
            REPLICA_CHECK,
            "It is not a replica: it accepts writes.",
            "Set DATABASE_REPLICA_URL to a standby of the server in DATABASE_URL.",
        )
    lag = get_replica_lag()
    is_empty = lag == timedelta.max
    message = (
        "It has not replicated anything yet." if is_empty else f"Its lag is {lag.total_seconds():.0f} s."
    )
    if lag > MAX_LAG:
        return report_warning(
            REPLICA_CHECK, message, "Check its log and disk. Until it catches up, it is not used."
        )
    return report_ok(REPLICA_CHECK, message)


NODES_CHECK = "nodes"


def check_nodes() -> Iterator[DoctorFinding]:
    """Check the workers of Citus, if the database has any."""
    states = list_node_states() if connection.vendor == "postgresql" else {}
    lost = [node for node, is_up in states.items() if not is_up]
    if lost:
        yield report_failure(
            NODES_CHECK,
            f"The coordinator cannot reach {', '.join(lost)}: workspaces there are not served.",
            "Start the node or its standby. It is used again automatically.",
        )
    elif states:
        yield report_ok(NODES_CHECK, f"All {len(states)} nodes respond.")


RLS_CHECK = "row-level security"
RLS_INACTIVE_MESSAGE = "Not effective: workspaces are separated by queries only."


def check_row_level_security() -> Iterator[DoctorFinding]:
    if connection.vendor != "postgresql":
        yield report_rls_inactive("Use PostgreSQL; SQLite has no roles.")
        return
    if gaps := find_unprotected_tables():
        yield report_failure(
            RLS_CHECK,
            f"{len(gaps)} tables are not protected, starting with {gaps[0]}.",
            ("Run manage.py migrate as the owner of the tables."),
        )
    elif is_role_restricted():
        yield report_ok(RLS_CHECK, "The database restricts each request to the rows of its workspace.")
    else:
        yield report_rls_inactive("Create a role with manage.py create_db_role, and use it in DATABASE_URL.")


def report_rls_inactive(advice: str) -> DoctorFinding:
    return (
        report_warning(RLS_CHECK, RLS_INACTIVE_MESSAGE, advice)
        if settings.PRODUCTION
        else report_ok(RLS_CHECK, RLS_INACTIVE_MESSAGE)
    )
