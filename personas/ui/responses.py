"""Parts of pages that ask again and again: answered only when there is something new."""

from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme


def hash_page_state(*values: object) -> str:
    """A short word for what was shown; equal figures give the same one."""
    return sha256(repr(values).encode()).hexdigest()[:16]


def get_unchanged_response(request: HttpRequest, state_hash: str) -> HttpResponse | None:
    """The empty answer for someone who has seen just this."""
    return HttpResponse(status=204) if request.GET.get("seen") == state_hash else None


def get_back_url(request: HttpRequest, default: str) -> str:
    """The page a form says it stands on, as long as it is one of ours."""
    url = request.POST.get("back", "")
    # A path alone: not even our own host is taken from a form.
    is_local = url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if is_local else default
