"""Who may read the figures: who brings the token, and who comes straight from an allowed network."""

from hmac import compare_digest
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest

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
