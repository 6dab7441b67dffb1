"""What templates say of runs and of the states of files: words, tones, durations."""

from datetime import timedelta

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.actors import SYSTEM_ACTOR
from personas.templatetags.ui import badge
from skills.models import FileState, RefreshRun, RunStatus

register = template.Library()

RUN_TONES = {
    RunStatus.QUEUED: "neutral",
    RunStatus.RUNNING: "info",
    RunStatus.DONE: "success",
    RunStatus.FAILED: "error",
    RunStatus.LOST: "warning",
}
FILE_TONES = {
    FileState.NEW: "info",
    FileState.CURRENT: "success",
    FileState.CHANGED: "accent",
    FileState.MISSING: "warning",
    FileState.INVALID: "error",
    FileState.QUARANTINED: "error",
    FileState.IGNORED: "neutral",
}
CAUSE_LABELS = {
    "created": _("First look"),
    "person": _("Asked for"),
    "schedule": _("On schedule"),
    "watch": _("A file changed"),
    "push": _("Files pushed"),
    "lost": _("After a lost worker"),
    "edited": _("Source edited"),
    "rules": _("Rules edited"),
    "command": _("Command line"),
}


@register.simple_tag
def run_badge(run: RefreshRun | None) -> SafeString:
    if run is None:
        return badge(gettext("Not looked at yet"))
    return badge(RunStatus(run.status).label, RUN_TONES[RunStatus(run.status)])


@register.simple_tag
def file_badge(state: str, count: int | None = None) -> SafeString:
    """The state of one file, or of so many."""
    words = FileState(state).label
    return badge(words if count is None else f"{count:,} {words.lower()}", FILE_TONES[FileState(state)])


@register.filter
def state_label(state: str) -> str:
    return str(FileState(state).label)


@register.filter
def cause_label(run: RefreshRun) -> str:
    return str(CAUSE_LABELS.get(run.cause, run.cause))


@register.filter
def requester(run: RefreshRun) -> str:
    """Who wanted it; what the product does by itself its cause tells."""
    return "" if run.actor_label == SYSTEM_ACTOR.label else run.actor_label


@register.filter
def duration(run: RefreshRun) -> str:
    """How long it took, or has taken so far; nothing before it has begun."""
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
