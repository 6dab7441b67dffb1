"""Files and pages for browser tests: static files with cache headers, axe added; slow with SLOW_PAGES=1."""

import os
import random
import time
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.http import HttpRequest, HttpResponse

AXE_URL = "/static/axe.js"
# Finds tests that do not wait: each response is late, and the browser runs scripts slowly.
IS_SLOW = "SLOW_PAGES" in os.environ
MAX_DELAY = 0.3
SCRIPT_SLOWDOWN = 4


class CachedStaticFiles(StaticFilesHandler):
    """Adds `Cache-Control`: without it the browser would request every file again on every page."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        pause()
        response = super().__call__(environ, start_response)
        pause()
        return response

    def serve(self, request: HttpRequest) -> Any:
        response: Any
        if request.path == AXE_URL:
            response = HttpResponse(AXE_SCRIPT, content_type="text/javascript")
        else:
            response = super().serve(request)
        response["Cache-Control"] = "max-age=3600"
        return response


def pause() -> None:
    """With SLOW_PAGES=1, wait for a random time: before a view runs, and before its response is sent."""
    if IS_SLOW:
        time.sleep(random.uniform(0, MAX_DELAY))  # noqa: S311  # no secret
