"""Where a button leads back to."""

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def back_or(request: HttpRequest, otherwise: str) -> str:
    """The page a form says it stands on, as long as it is one of ours."""
    said = request.POST.get("back", "")
    # A path alone: not even our own host is taken from a form.
    is_ours = said.startswith("/") and url_has_allowed_host_and_scheme(said, allowed_hosts=None)
    return said if is_ours else otherwise
