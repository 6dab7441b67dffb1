"""Static files for browser tests: with cache headers, and axe added."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.http import HttpRequest, HttpResponse

AXE_URL = "/static/axe.js"


class CachedStaticFiles(StaticFilesHandler):
    """Adds `Cache-Control`: without it the browser would request every file again on every page."""

    def serve(self, request: HttpRequest) -> Any:
        response: Any
        if request.path == AXE_URL:
            response = HttpResponse(AXE_SCRIPT, content_type="text/javascript")
        else:
            response = super().serve(request)
        response["Cache-Control"] = "max-age=3600"
        return response
