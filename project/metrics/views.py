"""GET /metrics: for those who may read it; to everybody else there is no such page."""

from hmac import compare_digest
from ipaddress import ip_address

import structlog
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from prometheus_client.core import Metric
from redis.exceptions import RedisError

from core.db.workspace_scope import all_workspaces
from project.metrics import counters
from project.metrics.exposition import CONTENT_TYPE, build_counter_families, format_metrics
from project.metrics.gauges import collect_gauges, run_collectors
from project.metrics.periodic import get_measured_metrics

# Whoever was sent on by a proxy is not where the proxy is; which of these to believe is not asked here.
FORWARDED_HEADERS = (
    "HTTP_X_FORWARDED_FOR",
    "HTTP_FORWARDED",
    "HTTP_X_REAL_IP",
    "HTTP_VIA",
    "HTTP_X_FORWARDED_PROTO",
)


def can_read_metrics(request: HttpRequest) -> bool:
    return has_metrics_token(request) or is_from_allowed_network(request)


def has_metrics_token(request: HttpRequest) -> bool:
    token: str = settings.DRAMATIS_METRICS_TOKEN
    said = request.headers.get("Authorization", "")
    return bool(token) and compare_digest(said.encode(), f"Bearer {token}".encode())


def is_from_allowed_network(request: HttpRequest) -> bool:
    if any(name in request.META for name in FORWARDED_HEADERS):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    # An IPv4 caller of a server that listens on both kinds.
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in settings.DRAMATIS_METRICS_NETWORKS)


log = structlog.get_logger(__name__)
ALLOWED_METHODS = ("GET", "HEAD")


# A form from a stranger must meet a page that is not there, and not one that wants a token.
@csrf_exempt
@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    if not can_read_metrics(request):
        raise Http404
    if request.method not in ALLOWED_METHODS:
        return HttpResponseNotAllowed(ALLOWED_METHODS)
    with all_workspaces():
        return HttpResponse(format_metrics(collect_metrics()), content_type=CONTENT_TYPE)


def collect_metrics() -> list[Metric]:
    """What can be found out now: with a part down, the others still tell their figures."""
    return [
        *collect_gauges(),
        *(run_collectors("database", [get_measured_metrics]) or []),
        *collect_counters(),
    ]


def collect_counters() -> list[Metric]:
    try:
        # What this process has counted; the others tell theirs within seconds.
        counters.flush_counts()
        return build_counter_families(counters.get_counter_sums())
    except RedisError as error:
        log.warning("metrics_collection_failed", part="redis", error=type(error).__name__)
        return []
