"""The API describes itself: as a document for programs, and as a page for people."""

import json
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from project.api.openapi import document


@cache
def whole_document() -> dict[str, Any]:
    from project.api.urls import urlpatterns  # it names this module's views

    return document(urlpatterns, settings.PUBLIC_URL)


@cache
def written() -> bytes:
    return json.dumps(whole_document(), ensure_ascii=False).encode()


@login_not_required
@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    answer = HttpResponse(written(), content_type="application/json")
    answer["Cache-Control"] = "public, max-age=300"
    answer["Access-Control-Allow-Origin"] = "*"
    return answer
