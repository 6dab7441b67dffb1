"""Helpers for responses: 204 for a polled page fragment that is unchanged, and a safe redirect URL."""

from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme


def hash_page_state(*values: object) -> str:
    """Hash the values that a page fragment shows. The client sends the hash back with its next poll."""
    return sha256(repr(values).encode()).hexdigest()[:16]


def get_unchanged_response(request: HttpRequest, state_hash: str) -> HttpResponse | None:
    """Return a 204 response if the client sent the same hash, so it needs no update; otherwise None."""
    return HttpResponse(status=204) if request.GET.get("seen") == state_hash else None


def get_back_url(request: HttpRequest, default: str) -> str:
    """Return the URL in the form field `back` if it is a local path, otherwise `default`.

    The check prevents open redirects.
    """
    url = request.POST.get("back", "")
    # Accept only a path. A complete URL is rejected even if it has our own host.
    is_local = url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if is_local else default
