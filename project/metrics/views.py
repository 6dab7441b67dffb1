"""GET /metrics for clients with the token or from an allowed network; others get 404."""

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

# A request with one of these headers was forwarded by a proxy and has the proxy's IP address. It never counts
# as coming from an allowed network.
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
    header = request.headers.get("Authorization", "")
    return bool(token) and compare_digest(header.encode(), f"Bearer {token}".encode())


def is_from_allowed_network(request: HttpRequest) -> bool:
    if any(name in request.META for name in FORWARDED_HEADERS):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    # An IPv4 client of a dual-stack server has an IPv4-mapped IPv6 address.
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in settings.DRAMATIS_METRICS_NETWORKS)


log = structlog.get_logger(__name__)
ALLOWED_METHODS = ("GET", "HEAD")


# Exempt from CSRF checks, so that a POST without access gets 404 and not a CSRF error.
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
    """Return all metrics. If the database or Redis is down, the other metrics are still returned."""
    return [
        *collect_gauges(),
        *(run_collectors("database", [get_measured_metrics]) or []),
        *collect_counters(),
    ]


def collect_counters() -> list[Metric]:
    try:
        # Flush the counts of this process; other processes flush theirs within seconds.
        counters.flush_counts()
        return build_counter_families(counters.get_counter_sums())
    except RedisError as error:
        log.warning("metrics_collection_failed", part="redis", error=type(error).__name__)
        return []
