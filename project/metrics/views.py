"""GET /metrics: for those who may read it; to everybody else there is no such page."""

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from redis.exceptions import RedisError

from core.db.workspace_scope import everywhere
from project.metrics import counters
from project.metrics.access import may_read
from project.metrics.exposition import counted_figures
from project.metrics.gauges import answered, present_figures
from project.metrics.periodic import measured_figures
from project.metrics.text import CONTENT_TYPE, Figure, written

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
        return HttpResponse(written(all_figures()), content_type=CONTENT_TYPE)


def all_figures() -> list[Figure]:
    """What can be found out now: with a part down, the others still tell their figures."""
    return [*present_figures(), *(answered("database", [measured_figures]) or []), *counted()]


def counted() -> list[Figure]:
    try:
        # What this process has counted; the others tell theirs within seconds.
        counters.flush()
        return counted_figures(counters.sums())
    except RedisError as error:
        log.warning("figures_not_found", part="redis", error=type(error).__name__)
        return []
