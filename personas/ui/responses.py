"""Parts of pages that ask again and again: answered only when there is something new."""

from hashlib import sha256

from django.http import HttpRequest, HttpResponse


def mark_of(*figures: object) -> str:
    """A short word for what was shown; equal figures give the same one."""
    return sha256(repr(figures).encode()).hexdigest()[:16]


def unchanged(request: HttpRequest, mark: str) -> HttpResponse | None:
    """The empty answer for someone who has seen just this."""
    return HttpResponse(status=204) if request.GET.get("seen") == mark else None
