"""How long what is no history is kept: old looks at sources, forgotten drafts, ended log-ins."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.drafts.services import delete_drafts_before
from skills.refresh.runs import delete_runs_before


def purge_refresh_runs() -> int:
    days: int = settings.DRAMATIS_KEEP_RUNS_DAYS
    return delete_runs_before(timezone.now() - timedelta(days=days)) if days else 0


def purge_drafts() -> int:
    days: int = settings.DRAMATIS_KEEP_DRAFTS_DAYS
    return delete_drafts_before(timezone.now() - timedelta(days=days)) if days else 0


def purge_sessions() -> int:
    """Those that ran out, and what the list of one's own log-ins says of sessions that are gone."""
    gone = delete_in_batches(Session.objects.filter(expire_date__lt=timezone.now()))
    old = timezone.now() - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    lost = UserSession.objects.filter(last_seen_at__lt=old)
    lost = lost.exclude(session_key__in=Session.objects.values("session_key"))
    return gone + delete_in_batches(lost)
