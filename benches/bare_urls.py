"""Baseline view: the response bytes of a fetch, from memory."""

import os
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.urls import path

BODY = Path(os.environ["BENCH_BODY"]).read_bytes()


def bare(request: HttpRequest) -> HttpResponse:
    # Middleware usually sets Content-Length; without it the response would be chunked.
    return HttpResponse(BODY, content_type="application/json", headers={"Content-Length": str(len(BODY))})


urlpatterns = [path("bare", bare)]
