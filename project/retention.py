"""Retention: delete old runs, drafts, sessions, security events, reports, verifications and contents."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import structlog
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from core.db.workspace_scope import workspace_scope
from personas.accounts.services import delete_security_events_before
from personas.drafts.services import delete_drafts_before
from personas.events.selectors import delete_events_before
from personas.limits.daily_usage import delete_old_counters
from personas.models import Workspace
from personas.notifications.services import delete_notifications_before
from personas.tenancy.lost_nodes import list_unreachable_workspaces, query_workspaces
from personas.webhooks.selectors import delete_deliveries_before
from prompts.evidence.drift.reports import delete_reports_before
from prompts.evidence.integrity.services import delete_verifications_before
from prompts.publishing.versions.content_retention import delete_unused_contents, delete_unused_file_revisions
from prompts.serving.call_contents.retention import delete_unused_call_contents
from skills.refresh.runs import delete_runs_before

log = structlog.get_logger(__name__)

# How many days notifications are kept, unless events are kept for less.
KEEP_NOTIFICATIONS_DAYS = 90
# How many days the log of webhook deliveries is kept.
KEEP_DELIVERIES_DAYS = 30
# The database allows deleting reports only after this time: see prompts.migrations.0002_append_only.
MIN_REPORT_DAYS = 30


def delete_everywhere(delete_before: Callable[[datetime], int], days: int) -> int:
    """Delete rows of all workspaces that are older than so many days."""
    return sum(query_workspaces(partial(delete_before, timezone.now() - timedelta(days=days))))


def purge_refresh_runs() -> int:
    days: int = settings.DRAMATIS_KEEP_RUNS_DAYS
    return delete_everywhere(delete_runs_before, days) if days else 0


def purge_drafts() -> int:
    days: int = settings.DRAMATIS_KEEP_DRAFTS_DAYS
    return delete_everywhere(delete_drafts_before, days) if days else 0


def purge_security_events() -> int:
    days: int = settings.DRAMATIS_KEEP_SECURITY_EVENTS_DAYS
    return delete_security_events_before(timezone.now() - timedelta(days=days)) if days else 0


def purge_events() -> int:
    months: int = settings.DRAMATIS_KEEP_EVENTS_MONTHS
    count = delete_everywhere(delete_deliveries_before, KEEP_DELIVERIES_DAYS)
    # Before the events: deleting an event also deletes its notifications, but does not update unread counts.
    notification_days = min(KEEP_NOTIFICATIONS_DAYS, months * 31) if months else KEEP_NOTIFICATIONS_DAYS
    count += delete_everywhere(delete_notifications_before, notification_days)
    return count + (delete_everywhere(delete_events_before, months * 31) if months else 0)


def purge_sessions() -> int:
    """Delete expired sessions, and the entries of allauth's session list whose session no longer exists."""
    expired_count = delete_in_batches(Session.objects.filter(expire_date__lt=timezone.now()))
    cutoff = timezone.now() - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    orphans = UserSession.objects.filter(last_seen_at__lt=cutoff)
    orphans = orphans.exclude(session_key__in=Session.objects.values("session_key"))
    return expired_count + delete_in_batches(orphans)


def purge_reports() -> int:
    days: int = settings.DRAMATIS_KEEP_REPORTS_DAYS
    return delete_everywhere(delete_reports_before, max(days, MIN_REPORT_DAYS)) if days else 0


def purge_verifications() -> int:
    days: int = settings.DRAMATIS_KEEP_VERIFICATIONS_DAYS
    return delete_everywhere(delete_verifications_before, days) if days else 0


def purge_contents() -> int:
    """Delete what no version, file or ledger row refers to, workspace by workspace.

    An error in one workspace is logged and does not stop the others.
    """
    days: int = settings.DRAMATIS_KEEP_UNUSED_DAYS
    count = sum(query_workspaces(delete_old_counters))
    cutoff = timezone.now() - timedelta(days=days)
    unreachable = list_unreachable_workspaces()
    for workspace_id in Workspace.objects.order_by("pk").values_list("pk", flat=True):
        if workspace_id in unreachable:
            continue
        try:
            with workspace_scope(workspace_id):
                count += delete_unused_call_contents(workspace_id)
                if days:
                    count += delete_unused_file_revisions(workspace_id, cutoff)
                    count += delete_unused_contents(workspace_id, cutoff)
        except DatabaseError as error:
            reason = str(error).partition("\n")[0]
            log.error("content_retention_failed", workspace=workspace_id, reason=reason)  # noqa: TRY400
    return count
