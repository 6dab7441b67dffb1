"""How the browser gets its files in tests: once for each window, axe among them."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.http import HttpRequest, HttpResponse

AXE = "/static/axe.js"


class KeptFiles(StaticFilesHandler):
    """Without a word about how long a file is good, the browser would ask for each of them on every page."""

    def serve(self, request: HttpRequest) -> Any:
        answer: Any
        if request.path == AXE:
            answer = HttpResponse(AXE_SCRIPT, content_type="text/javascript")
        else:
            answer = super().serve(request)
        answer["Cache-Control"] = "max-age=3600"
        return answer
