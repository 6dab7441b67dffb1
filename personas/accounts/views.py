"""Page with the security events of the signed-in user."""

from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from personas.accounts.selectors import get_security_event_page
from personas.models import User


@require_safe
def security_events(request: HttpRequest) -> HttpResponse:
    cursor = request.GET.get("before", "")
    is_cursor = cursor.isascii() and cursor.isdecimal() and len(cursor) < 19
    page = get_security_event_page(cast("User", request.user), before=int(cursor) if is_cursor else None)
    context = {
        "page": page,
        "older": urlencode({"before": page.next_cursor}) if page.next_cursor else "",
        "is_further": is_cursor,
        "days": settings.DRAMATIS_KEEP_SECURITY_EVENTS_DAYS,
    }
    return render(request, "personas/accounts/security_events.html", context)
