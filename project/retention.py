"""Retention: delete old refresh runs, abandoned drafts, old security events and expired sessions."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.accounts.services import delete_security_events_before
from personas.drafts.services import delete_drafts_before
from skills.refresh.runs import delete_runs_before


def purge_refresh_runs() -> int:
    days: int = settings.DRAMATIS_KEEP_RUNS_DAYS
    return delete_runs_before(timezone.now() - timedelta(days=days)) if days else 0


def purge_drafts() -> int:
    days: int = settings.DRAMATIS_KEEP_DRAFTS_DAYS
    return delete_drafts_before(timezone.now() - timedelta(days=days)) if days else 0


def purge_security_events() -> int:
    days: int = settings.DRAMATIS_KEEP_SECURITY_EVENTS_DAYS
    return delete_security_events_before(timezone.now() - timedelta(days=days)) if days else 0


def purge_sessions() -> int:
    """Delete expired sessions, and the entries of allauth's session list whose session no longer exists."""
    expired_count = delete_in_batches(Session.objects.filter(expire_date__lt=timezone.now()))
    cutoff = timezone.now() - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    orphans = UserSession.objects.filter(last_seen_at__lt=cutoff)
    orphans = orphans.exclude(session_key__in=Session.objects.values("session_key"))
    return expired_count + delete_in_batches(orphans)
