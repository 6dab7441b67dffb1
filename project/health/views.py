"""Liveness (/healthz) and readiness (/readyz) endpoints for orchestrators."""

from collections.abc import Callable

import structlog
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from project.redis_client import connect_redis

log = structlog.get_logger(__name__)


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Respond with 200 if the process responds at all.

    The database is not checked: if it is down, restarting this process does not help.
    """
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Respond with 200 if the process can serve prompts, otherwise with 503.

    Prompts are served without Redis. If only Redis fails, the response is therefore 200 with the status
    "degraded": a proxy that obeys /readyz would otherwise take every web out of service.
    """
    checks = {name: run_probe(check) for name, check in READINESS_PROBES.items()}
    failed = {name for name, result in checks.items() if result != "ok"}
    is_ready = failed <= OPTIONAL_PROBES
    status = ("degraded" if failed else "ok") if is_ready else "unready"
    return JsonResponse(
        {"status": status, "checks": checks},
        status=200 if is_ready else 503,
        headers={} if is_ready else {"Retry-After": "5"},
    )


def run_probe(check: Callable[[], str]) -> str:
    try:
        return check()
    # Any error means that the part does not work. The reason is logged but not returned, because it may
    # contain host names.
    except Exception as error:  # noqa: BLE001
        log.warning(
            "readiness_check_failed", check=check.__name__, error=type(error).__name__, reason=str(error)
        )
        return "failed"


def probe_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def probe_redis() -> str:
    with connect_redis(settings.REDIS_URL) as client:
        client.ping()
    return "ok"


def probe_migrations() -> str:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(pending)} unapplied" if pending else "ok"


READINESS_PROBES: dict[str, Callable[[], str]] = {
    "database": probe_database,
    "redis": probe_redis,
    "migrations": probe_migrations,
}
# Probes whose failure is reported but does not make the process unready.
OPTIONAL_PROBES = frozenset({"redis"})
