"""Record security events: in the log, and in the list of the account's user."""

from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network

import structlog
from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.accounts.models import REPEATED_KINDS, SecurityEvent, SecurityEventKind
from personas.actors import Actor
from personas.models import User

log = structlog.get_logger(__name__)

# Repeated events of the same kind, account and network within this time are counted in one row.
REPEAT_WINDOW = timedelta(hours=1)
# Maximum number of rows of repeated events per account and day. Further events are only logged, so that a
# distributed attack does not fill the table.
MAX_REPEATED_ROWS = 500
IPV4_PREFIX, IPV6_PREFIX = 24, 48


def shorten_address(address: str) -> str:
    """Return the network of an address (/24 or /48), which tells where from but not which machine."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    prefix = IPV4_PREFIX if parsed.version == 4 else IPV6_PREFIX  # IP version 4 or 6
    return str(ip_network(f"{parsed}/{prefix}", strict=False))


def get_client_network(request: HttpRequest | None) -> str:
    if request is None:
        return ""
    try:
        return shorten_address(get_adapter().get_client_ip(request))
    except PermissionDenied:
        # allauth raises PermissionDenied if it cannot find out the client's address.
        return ""


def record_security_event(
    user: User | None,
    kind: SecurityEventKind,
    *,
    request: HttpRequest | None = None,
    detail: str = "",
    by: Actor | None = None,
) -> None:
    """Write a security event to the log and to the list of the user."""
    event = SecurityEvent(
        user=user,
        kind=kind,
        detail=detail[:200],
        actor_label=by.label[:254] if by else "",
        network=get_client_network(request),
        user_agent=request.headers.get("User-Agent", "")[:200] if request else "",
    )
    log.info(
        kind.value, account_id=event.user_id, network=event.network, detail=event.detail, by=event.actor_label
    )
    if kind not in REPEATED_KINDS:
        event.save(force_insert=True)
    elif not count_repeated_event(event):
        rows = SecurityEvent.objects.filter(user=user, kind__in=REPEATED_KINDS)
        if rows.filter(at__gte=event.at - timedelta(days=1)).count() < MAX_REPEATED_ROWS:
            event.save(force_insert=True)


def count_repeated_event(event: SecurityEvent) -> bool:
    """Add the event to an existing row of the same kind and network. Return False if there is none."""
    rows = SecurityEvent.objects.filter(
        user=event.user, kind=event.kind, network=event.network, at__gte=timezone.now() - REPEAT_WINDOW
    )
    newest = rows.order_by("-at", "-pk").values_list("pk", flat=True).first()
    if newest is None:
        return False
    return bool(SecurityEvent.objects.filter(pk=newest).update(count=F("count") + 1, at=event.at))


def end_other_sessions(request: HttpRequest, user: User) -> int:
    """End all sessions of a user except the one of this request. Return their number."""
    sessions = UserSession.objects.filter(user=user).exclude(session_key=request.session.session_key)
    for session in sessions:
        end_user_session(session, request)
    return len(sessions)


def end_user_session(session: UserSession, request: HttpRequest) -> None:
    record_security_event(
        session.user, SecurityEventKind.SESSION_ENDED, request=request, detail=session.user_agent
    )
    session.end()


def delete_security_events_before(cutoff: datetime) -> int:
    return delete_in_batches(SecurityEvent.objects.filter(at__lt=cutoff))
