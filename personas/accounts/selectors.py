"""Queries for the security events of a user."""

from core.db.keyset_pagination import KeysetPage, get_keyset_page
from personas.accounts.models import SecurityEvent
from personas.models import User

SECURITY_PAGE_SIZE = 50


def get_security_event_page(user: User, *, before: int | None = None) -> KeysetPage[SecurityEvent]:
    rows = SecurityEvent.objects.filter(user=user)
    return get_keyset_page(
        rows.order_by("-at", "-pk"), before=before, cursor_rows=rows, limit=SECURITY_PAGE_SIZE
    )
