"""Template tags for refresh runs and file statuses: labels, badges, durations."""

from datetime import timedelta

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.actors import SYSTEM_ACTOR
from personas.templatetags.ui import badge
from skills.models import FileStatus, RefreshRun, RunStatus
from skills.templatetags.context_files import STATUS_TONES

register = template.Library()

RUN_TONES = {
    RunStatus.QUEUED: "neutral",
    RunStatus.RUNNING: "info",
    RunStatus.DONE: "success",
    RunStatus.HELD: "warning",
    RunStatus.FAILED: "error",
    RunStatus.LOST: "warning",
}
CAUSE_LABELS = {
    "created": _("First refresh"),
    "person": _("Requested"),
    "schedule": _("Scheduled"),
    "watch": _("A file changed"),
    "push": _("Files pushed"),
    "confirmed": _("Removal confirmed"),
    "lost": _("After an interruption"),
    "edited": _("Source edited"),
    "rules": _("Discovery rules edited"),
    "command": _("Command line"),
}


@register.simple_tag
def run_badge(run: RefreshRun | None) -> SafeString:
    if run is None:
        return badge(gettext("Not refreshed yet"))
    return badge(RunStatus(run.status).label, RUN_TONES[RunStatus(run.status)])


@register.simple_tag
def file_badge(status: str, count: int | None = None) -> SafeString:
    """Render a file status as a badge. With `count`, the badge also shows how many files have this status."""
    label = FileStatus(status).label
    return badge(label if count is None else f"{count:,} {label.lower()}", STATUS_TONES[status])


@register.filter
def status_label(status: str) -> str:
    return str(FileStatus(status).label)


@register.filter
def cause_label(run: RefreshRun) -> str:
    return str(CAUSE_LABELS.get(run.cause, run.cause))


@register.filter
def requester(run: RefreshRun) -> str:
    """Return who requested the run. Empty for automatic runs; the page shows their cause instead."""
    return "" if run.actor_label == SYSTEM_ACTOR.label else run.actor_label


@register.filter
def duration(run: RefreshRun) -> str:
    """Return the duration of the run; for a running one, the time since its start. Empty before the start."""
    if run.started_at is None:
        return ""
    return format_duration((run.finished_at or timezone.now()) - run.started_at)


def format_duration(time: timedelta) -> str:
    seconds = max(time.total_seconds(), 0)
    if seconds < 10:
        return gettext("%(seconds)s s") % {"seconds": f"{seconds:.1f}"}
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return gettext("%(seconds)s s") % {"seconds": rest}
    return gettext("%(minutes)s min %(seconds)s s") % {"minutes": minutes, "seconds": rest}
