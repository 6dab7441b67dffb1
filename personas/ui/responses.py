"""Parts of pages that ask again and again: answered only when there is something new."""

from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme


def hash_page_state(*figures: object) -> str:
    """A short word for what was shown; equal figures give the same one."""
    return sha256(repr(figures).encode()).hexdigest()[:16]


def get_unchanged_response(request: HttpRequest, mark: str) -> HttpResponse | None:
    """The empty answer for someone who has seen just this."""
    return HttpResponse(status=204) if request.GET.get("seen") == mark else None


def get_back_url(request: HttpRequest, otherwise: str) -> str:
    """The page a form says it stands on, as long as it is one of ours."""
    said = request.POST.get("back", "")
    # A path alone: not even our own host is taken from a form.
    is_ours = said.startswith("/") and url_has_allowed_host_and_scheme(said, allowed_hosts=None)
    return said if is_ours else otherwise
