"""The record: where every chain ends, as far as can be seen in a moment; all of it takes `--whole`."""

import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import cache
from django.db import connection, connections
from django.utils import timezone

from core.db.replica import FAILURES, HERE, MOST_BEHIND, REPLICA, standing, time_behind
from personas.models import Workspace
from project.database.rls_audit import open_tables
from project.database.roles import is_held
from project.doctor.results import Finding, fail, ok, warn
from project.metrics.gauges import Asked, builds, nearest, refreshes
from project.tasks import HEARTBEAT_KEY, HEARTBEAT_SECONDS
from prompts.integrity.checkpoints import NoSigningKey, public_key_told
from prompts.integrity.verify import verify_workspace
from prompts.integrity.verify.version import faults_of
from prompts.models import AgentPrompt, Checkpoint, SigningKey
from prompts.proof.checkpoints import SignedCheckpoint, verify_signature
from prompts.proof.signing_keys import UnusableKey, load_public

RECORD = "record"
# Newest versions looked at in each workspace, and seconds for all of them.
HEADS, LONGEST = 5, 20.0
WHAT_TO_DO = "Keep the database as it is, run manage.py verify_chain, and compare with a backup."


def look_at_record(*, whole: bool = False) -> Iterator[Finding]:
    deadline, looked = time.monotonic() + LONGEST, 0
    workspaces = list(Workspace.objects.order_by("pk"))
    for workspace in workspaces:
        if not whole and time.monotonic() > deadline:
            yield warn(
                RECORD,
                f"Time was up after {looked} of {len(workspaces)} workspaces.",
                "Use --whole at night.",
            )
            return
        if fault := fault_of(workspace, whole=whole):
            yield fail(RECORD, f"{workspace.slug}: {fault}", WHAT_TO_DO)
        looked += 1
    yield ok(RECORD, f"{'All' if whole else 'The newest'} rows hold; workspaces looked at: {looked}.")


def fault_of(workspace: Workspace, *, whole: bool) -> str:
    if whole:
        first = verify_workspace(workspace).first
        return str(first) if first else ""
    return head_fault(workspace) or checkpoint_fault(workspace)


def head_fault(workspace: Workspace) -> str:
    """The ends of the chains that were added to last."""
    rows = AgentPrompt.objects.in_workspace(workspace).exclude(latest=None).order_by("-latest_id")
    for prompt in rows.select_related("latest", "agent", "channel")[:HEADS]:
        version = prompt.latest
        if version is None:
            continue
        version.prompt, version.workspace = prompt, workspace
        if prompt.last_hash != version.hash or prompt.last_number != version.number:
            return f"{prompt} does not end with its newest version."
        if found := faults_of(version):
            return f"{version}: {found[0]}"
    return ""


def checkpoint_fault(workspace: Workspace) -> str:
    """The newest statement: signed by a key that is known, about a past that is still there."""
    last = Checkpoint.objects.in_workspace(workspace).order_by("-sequence").first()
    if last is None:
        return ""
    signed = SignedCheckpoint(last.body, last.signature, last.key_id, last.heads)
    key = SigningKey.objects.in_workspace(workspace).filter(key_id=last.key_id).first()
    try:
        if key is None or not verify_signature(signed, load_public(key.public_key)):
            return f"{last} is not signed by a key that is known."
    except UnusableKey as error:
        return f"The key of {last} cannot be read: {error}"
    return "" if signed.hash == last.hash else f"The columns of {last} are not what was signed."


# Two missed beats are a slow minute, ten of them a missing worker.
LATE = timedelta(seconds=HEARTBEAT_SECONDS * 3)
SLOW_SECONDS, STUCK_SECONDS = 120, 900
TIGHT, FULL = 0.10, 0.03
START = "Start `celery -A project worker` and one `celery -A project beat`."


def look_at_work() -> Iterator[Finding]:
    yield heartbeat()
    yield waiting("build queue", builds)
    yield waiting("refresh queue", refreshes)


def heartbeat() -> Finding:
    said = cache.get(HEARTBEAT_KEY)
    if said is None:
        return fail("worker", "No worker has reported for minutes.", START)
    age = timezone.now() - datetime.fromisoformat(said)
    words = f"Last heard of {age.total_seconds():.0f} s ago."
    return warn("worker", words, "Look at the log of worker and beat.") if age > LATE else ok("worker", words)


def waiting(name: str, asked: Asked) -> Finding:
    """How much waits, and since when."""
    many, oldest = (figure.samples[0].value for figure in asked())
    words = f"{many:.0f} wait, the oldest for {oldest:.0f} s."
    if oldest > STUCK_SECONDS:
        return fail(name, words, "Look at the log of the workers: they do not take what waits.")
    if oldest > SLOW_SECONDS:
        return warn(name, words, "Start more workers if it stays so.")
    return ok(name, words)


def look_at_disks() -> Iterator[Finding]:
    places = {"disk of var": settings.VAR, "disk of checkpoints": settings.DRAMATIS_CHECKPOINT_DIR}
    if connection.vendor == "sqlite":
        places["disk of the database"] = Path(str(connection.settings_dict["NAME"])).parent
    for name, place in places.items():
        yield room(name, nearest(Path(place)))


def room(name: str, place: Path) -> Finding:
    usage = shutil.disk_usage(place)
    share = usage.free / usage.total if usage.total else 0.0
    words = f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f} ({share:.0%})."
    if share < FULL:
        return fail(
            name, words, "Make room now: when it is full nothing can be recorded, so nothing is served."
        )
    return warn(name, words, "Make room soon.") if share < TIGHT else ok(name, words)


SHORTEST_SECRET = 50
SETTINGS = "settings"


def look_at_settings() -> Iterator[Finding]:
    found = [*modes(), *addresses(), *doors()]
    yield from found or [ok(SETTINGS, "Nothing in them stands out.")]
    yield signing()


def modes() -> Iterator[Finding]:
    if not settings.PRODUCTION:
        yield warn(
            SETTINGS, "This is development.", "Set DRAMATIS_ENV=production where others than you rely on it."
        )
    if settings.DEBUG:
        yield fail(SETTINGS, "Errors are shown with source code.", "Unset DRAMATIS_DEBUG.")
    if len(settings.SECRET_KEY) < SHORTEST_SECRET:
        yield fail(SETTINGS, "SECRET_KEY is short.", "Make one of 64 random bytes, as .env.example shows.")


def addresses() -> Iterator[Finding]:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if settings.PRODUCTION and not settings.TLS:
        yield warn(SETTINGS, "PUBLIC_URL is not https.", "Put a TLS proxy in front and name it with https.")
    elif settings.PRODUCTION and not settings.HSTS:
        yield warn(
            SETTINGS, "Browsers are not told to keep to https.", "Once it works, set DRAMATIS_HSTS=true."
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield fail(SETTINGS, "Any host name is answered.", "Name the real ones in ALLOWED_HOSTS.")
    elif host not in settings.ALLOWED_HOSTS and f".{host.partition('.')[2]}" not in settings.ALLOWED_HOSTS:
        yield warn(SETTINGS, f"{host} is not in ALLOWED_HOSTS.", "Add it, or PUBLIC_URL leads nowhere.")


def doors() -> Iterator[Finding]:
    if settings.PRODUCTION and not settings.DRAMATIS_REQUIRE_OWNER_MFA:
        yield warn(SETTINGS, "Owners need no second factor.", "Unset DRAMATIS_REQUIRE_OWNER_MFA.")
    if settings.PRODUCTION and not (settings.DRAMATIS_METRICS_TOKEN or settings.DRAMATIS_METRICS_NETWORKS):
        yield warn(SETTINGS, "Nobody can read /metrics.", "Set DRAMATIS_METRICS_TOKEN for your Prometheus.")


def signing() -> Finding:
    try:
        name, _ = public_key_told()
    except NoSigningKey as error:
        return fail("signing key", error.message, "Point DRAMATIS_SIGNING_KEY at an Ed25519 key in PEM.")
    return ok("signing key", f"Checkpoints are signed with {name}.")


READ_REPLICA = "replica"


def look_at_replica() -> Iterator[Finding]:
    """Nothing where none is set; never a failure, since pages are read from the database meanwhile."""
    if REPLICA not in connections.databases:
        return
    try:
        yield how_it_stands()
    except FAILURES as error:
        yield warn(
            READ_REPLICA,
            f"It does not answer ({type(error).__name__}).",
            "Start it, or mend DATABASE_REPLICA_URL; until then the database is asked for everything.",
        )


def how_it_stands() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(HERE)
        position, _ = cursor.fetchone()
    if not standing(position)[0]:
        return warn(
            READ_REPLICA,
            "It is no copy: it takes writes itself.",
            "Point DATABASE_REPLICA_URL at a standby of DATABASE_URL's server.",
        )
    behind = time_behind()
    is_empty = behind == timedelta.max
    words = "It has taken nothing over yet." if is_empty else f"It is {behind.total_seconds():.0f} s behind."
    if behind > MOST_BEHIND:
        return warn(READ_REPLICA, words, "Look at its log and its disk; until then it is not asked.")
    return ok(READ_REPLICA, words)


ROW_SECURITY = "second wall"
ABSENT = "It is not in force: queries alone keep workspaces apart."


def look_at_walls() -> Iterator[Finding]:
    if connection.vendor != "postgresql":
        yield absent("Use PostgreSQL; SQLite has no roles.")
        return
    if holes := open_tables():
        yield fail(
            ROW_SECURITY, f"{len(holes)} holes, the first in {holes[0]}.", "Run manage.py migrate as owner."
        )
    elif is_held():
        yield ok(ROW_SECURITY, "The database shows each request the rows of its own workspace only.")
    else:
        yield absent("Make a role with manage.py app_role, and name it in DATABASE_URL.")


def absent(advice: str) -> Finding:
    return warn(ROW_SECURITY, ABSENT, advice) if settings.PRODUCTION else ok(ROW_SECURITY, ABSENT)
