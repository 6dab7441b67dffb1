"""Helpers for responses: 204 for an unchanged page fragment, a safe redirect URL, tokens of reviews."""

from hashlib import sha256

from django.core import signing
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


# Form field that contains the token of a review.
REVIEWED_FIELD = "reviewed"
# The effect in the token of an undo button. Undo restores what was in production before a reviewed action.
UNDO_EFFECT = "undo"
MAX_AGE_SECONDS = 12 * 3600
SALT = "prompts.publishing.review"


def create_review_token(user_id: int, path: str, effect: str) -> str:
    """Create the token of a review: this user has seen this effect of a POST to this path."""
    return signing.dumps([user_id, path, effect], salt=SALT)


def read_review_token(token: str, user_id: int, path: str) -> str | None:
    """Return the effect that the user has seen; None if the token is invalid, or of another action."""
    try:
        data = signing.loads(token, salt=SALT, max_age=MAX_AGE_SECONDS)
    except signing.BadSignature:
        return None
    if not isinstance(data, list) or data[:2] != [user_id, path]:
        return None
    return str(data[2])
