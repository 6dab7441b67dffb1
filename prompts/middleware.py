"""Tells whoever edited something what it meant for prompts, on the page that comes next."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse

from prompts.echoes import Echo, listen


class EchoMiddleware:
    """Counts what a request rebuilt; only a redirect is followed by a page that can say so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        echo = listen()
        response = self.get_response(request)
        if request.method == "POST" and 300 <= response.status_code < 400:
            tell(request, echo)
        return response


def tell(request: HttpRequest, echo: Echo) -> None:
    if echo.built:
        messages.info(request, f"{prompts(echo.built)} rebuilt.")
    if echo.pending:
        messages.info(request, f"{prompts(echo.pending)} {are(echo.pending)} being rebuilt.")
    if echo.failed:
        one = echo.failed == 1
        stays = (
            "stays as it was: its versions say why" if one else "stay as they were: their versions say why"
        )
        messages.warning(request, f"{prompts(echo.failed)} could not be built and {stays}.")


def prompts(count: int) -> str:
    return f"{count:,} prompt{'' if count == 1 else 's'}"


def are(count: int) -> str:
    return "is" if count == 1 else "are"
