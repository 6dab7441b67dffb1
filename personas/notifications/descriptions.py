"""Text and link of notifications, for the page and for emails."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from personas.models import ApiKey, Event, Notification, WebhookEndpoint, Workspace
from personas.notifications.rules import DETAIL_SOURCES
from personas.notifications.selectors import count_open


@dataclass(frozen=True)
class NotificationText:
    """A notification as members see it."""

    pk: int
    title: str
    # A line about the subject, such as the message of a release.
    detail: str
    url: str
    icon: str
    at: datetime
    is_unread: bool


KIND_ICONS = {
    "review_requested": "release",
    "release_updated": "release",
    "commented": "channel",
    "memory_proposed": "memory",
    "file_waiting": "inbox",
    "build_failed": "warning",
    "key_expiring": "key",
    "webhook_disabled": "link",
    "chain_broken": "chain",
}


def describe_notifications(workspace: Workspace, rows: Sequence[Notification]) -> list[NotificationText]:
    """Return texts and links of notifications. The events and their actors must be loaded."""
    details = load_details(workspace.pk, [row.event for row in rows])
    open_counts = count_open(workspace.pk, {row.kind for row in rows if row.is_unread})
    return [
        NotificationText(
            pk=row.pk,
            title=build_title(row, open_counts.get(row.kind, 0) if row.is_unread else 0),
            detail=details.get(row.event_id, "") if row.count == 1 else "",
            url=build_target_url(row, workspace),
            icon=KIND_ICONS.get(row.kind, "info"),
            at=row.at,
            is_unread=row.is_unread,
        )
        for row in rows
    ]


def load_details(workspace_id: int, events: Sequence[Event]) -> dict[int, str]:
    by_subject = defaultdict[str, list[Event]](list)
    for event in events:
        by_subject[event.type.partition(".")[0]].append(event)
    sources = {"key": list_key_names, "webhook": list_endpoint_names} | DETAIL_SOURCES
    details: dict[int, str] = {}
    for subject, group in by_subject.items():
        if subject in sources:
            details |= sources[subject](workspace_id, group)
    return details


def list_key_names(workspace_id: int, events: Sequence[Event]) -> dict[int, str]:
    rows = ApiKey.objects.in_workspace(workspace_id).filter(pk__in=[one.data["key_id"] for one in events])
    names = dict(rows.values_list("pk", "name"))
    return {event.pk: names.get(event.data["key_id"], "") for event in events}


def list_endpoint_names(workspace_id: int, events: Sequence[Event]) -> dict[int, str]:
    ids = [event.data["endpoint_id"] for event in events]
    rows = WebhookEndpoint.objects.in_workspace(workspace_id).filter(pk__in=ids)
    names = dict(rows.values_list("pk", "name"))
    return {event.pk: names.get(event.data["endpoint_id"], "") for event in events}


# --- titles ----------------------------------------------------------------------------------------------


# Titles by event type. `person` is the user who caused the event.
PERSON_TITLES = {
    "release.requested": _("%(person)s requested a review of release %(number)s"),
    "release.review_requested": _("%(person)s requested your review of release %(number)s"),
    "release.commented": _("%(person)s commented on release %(number)s"),
    "release.changes_requested": _("%(person)s requested changes to release %(number)s"),
    "release.approved": _("%(person)s approved release %(number)s"),
    "release.rejected": _("%(person)s rejected release %(number)s"),
    "release.withdrawn": _("%(person)s withdrew release %(number)s"),
    "release.voided": _("Release %(number)s is out of date"),
    "release.released": _("%(person)s published release %(number)s to %(label)s"),
    "agent.review_lifted": _("%(person)s lifted the review of %(agent)s"),
    "workspace.review_lifted": _("%(person)s lifted the review of new agents"),
    "memory.commented": _("%(person)s commented on a memory"),
    "version.commented": _(
        "%(person)s commented on line %(line)s of version %(number)s (%(agent)s on %(channel)s)"
    ),
}


# Titles by event type: OPEN_TITLES count what is open now, COUNTED_TITLES count the events.
OPEN_TITLES: dict[str, Callable[[int], str]] = {
    "memory.proposed": lambda count: ngettext(
        "%(count)s memory needs approval", "%(count)s memories need approval", count
    ),
    "context_file.waiting": lambda count: ngettext(
        "%(count)s context file needs review", "%(count)s context files need review", count
    ),
}

COUNTED_TITLES: dict[str, Callable[[int], str]] = {
    "memory.proposed": lambda count: ngettext(
        "%(count)s memory was proposed", "%(count)s memories were proposed", count
    ),
    "context_file.waiting": lambda count: ngettext(
        "%(count)s context file changed", "%(count)s context files changed", count
    ),
}


def build_title(row: Notification, open_count: int = 0) -> str:
    """Return the title. If something of the kind is open, the number is that of the page it links to."""
    event = row.event
    if open_count and event.type in OPEN_TITLES:
        return OPEN_TITLES[event.type](open_count) % {"count": open_count}
    if event.type in PERSON_TITLES:
        person = str(event.actor) if event.actor else "Dramatis"
        return str(PERSON_TITLES[event.type]) % {**event.data, "person": person}
    if event.type in COUNTED_TITLES:
        return COUNTED_TITLES[event.type](row.count) % {"count": row.count}
    if event.type == "build.failed":
        if row.count > 1:
            text = ngettext("%(count)s build failed", "%(count)s builds failed", row.count)
            return text % {"count": row.count}
        agent, channel = event.data["agent"], event.data["channel"]
        return gettext("Build failed for %(agent)s on %(channel)s") % {"agent": agent, "channel": channel}
    titles = {
        "key.expiring": gettext("An API key expires within seven days"),
        "webhook.disabled": gettext("A webhook endpoint was disabled"),
        "chain.broken": gettext("An integrity check failed"),
    }
    return titles.get(event.type, event.type)


# --- links -----------------------------------------------------------------------------------------------

# The page that a notification links to, by kind or, if a kind has several pages, by event type: the route,
# and the fields of the event's data that are the arguments of the route.
TARGET_ROUTES: dict[str, tuple[str, tuple[str, ...]]] = {
    "review_requested": ("releases:detail", ("number",)),
    "release_updated": ("releases:detail", ("number",)),
    "release.commented": ("releases:detail", ("number",)),
    "agent.review_lifted": ("agents:detail", ("agent",)),
    "workspace.review_lifted": ("agents:list", ()),
    "memory.commented": ("memories:detail", ("memory_id",)),
    "version.commented": ("versions:detail", ("prompt_id", "number")),
    "memory_proposed": ("memories:board", ()),
    "file_waiting": ("inbox:list", ()),
    "build_failed": ("versions:list", ("agent",)),
    "key_expiring": ("api-keys:detail", ("key_id",)),
    "webhook_disabled": ("webhooks:detail", ("endpoint_id",)),
    "chain_broken": ("integrity:show", ()),
}


def build_target_url(row: Notification, workspace: Workspace) -> str:
    """Return the address of the page where the member can act."""
    if row.kind == "build_failed" and row.count > 1:
        return reverse("builds:everything", args=[workspace.slug])
    route, names = TARGET_ROUTES.get(row.event.type) or TARGET_ROUTES[row.kind]
    url = reverse(route, args=[workspace.slug, *(row.event.data[name] for name in names)])
    if row.kind == "build_failed":
        url += "?" + urlencode({"channel": row.event.data["channel"]})
    return url
