"""Responses for polling page fragments (204 while unchanged), and the URL to redirect back to."""

from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme


def hash_page_state(*values: object) -> str:
    """Hash the values that a fragment shows; the client sends the hash back when it polls."""
    return sha256(repr(values).encode()).hexdigest()[:16]


def get_unchanged_response(request: HttpRequest, state_hash: str) -> HttpResponse | None:
    """Return 204 if the client already shows this state, otherwise None."""
    return HttpResponse(status=204) if request.GET.get("seen") == state_hash else None


def get_back_url(request: HttpRequest, default: str) -> str:
    """Return the page named in the form field `back`, if it is a local path (prevents open redirects)."""
    url = request.POST.get("back", "")
    # Only a path is accepted, not even a URL with our own host.
    is_local = url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if is_local else default
