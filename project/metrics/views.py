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

from core.db.workspace_scope import everywhere
from project.metrics import counters
from project.metrics.exposition import CONTENT_TYPE, counter_families, format_metrics
from project.metrics.gauges import answered, present_figures
from project.metrics.periodic import measured_figures

# Whoever was sent on by a proxy is not where the proxy is; which of these to believe is not asked here.
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA", "HTTP_X_FORWARDED_PROTO")


def may_read(request: HttpRequest) -> bool:
    return has_token(request) or comes_from_allowed(request)


def has_token(request: HttpRequest) -> bool:
    token: str = settings.DRAMATIS_METRICS_TOKEN
    said = request.headers.get("Authorization", "")
    return bool(token) and compare_digest(said.encode(), f"Bearer {token}".encode())


def comes_from_allowed(request: HttpRequest) -> bool:
    if any(name in request.META for name in FORWARDED):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    # An IPv4 caller of a server that listens on both kinds.
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in settings.DRAMATIS_METRICS_NETWORKS)


log = structlog.get_logger(__name__)
METHODS = ("GET", "HEAD")


# A form from a stranger must meet a page that is not there, and not one that wants a token.
@csrf_exempt
@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    if not may_read(request):
        raise Http404
    if request.method not in METHODS:
        return HttpResponseNotAllowed(METHODS)
    with everywhere():
        return HttpResponse(format_metrics(all_figures()), content_type=CONTENT_TYPE)


def all_figures() -> list[Metric]:
    """What can be found out now: with a part down, the others still tell their figures."""
    return [*present_figures(), *(answered("database", [measured_figures]) or []), *counted()]


def counted() -> list[Metric]:
    try:
        # What this process has counted; the others tell theirs within seconds.
        counters.flush()
        return counter_families(counters.sums())
    except RedisError as error:
        log.warning("figures_not_found", part="redis", error=type(error).__name__)
        return []
