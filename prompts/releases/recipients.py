"""Whom the events of releases concern, and their messages, for notifications."""

from collections.abc import Callable, Sequence

from personas.models import Event
from prompts.models import Release
from prompts.releases.authors import list_release_authors
from prompts.releases.selectors import list_release_items


def list_release_people(event: Event) -> set[int]:
    """Return the ids of the user who requested a release and of the authors of its changes."""
    rows = Release.objects.in_workspace(event.workspace_id)
    release = rows.filter(pk=event.data["release_id"]).first()
    if release is None:
        return set()
    requester = {release.requested_by_id} if release.requested_by_id else set()
    return requester | list_release_authors(release, list_release_items(release))


RELEASE_RECIPIENTS: dict[str, Callable[[Event], set[int]]] = dict.fromkeys(
    ("release.approved", "release.rejected", "release.withdrawn", "release.voided", "release.released"),
    list_release_people,
)


def list_release_messages(workspace_id: int, events: Sequence[Event]) -> dict[int, str]:
    """Return the messages of the releases of these events."""
    ids = {event.data["release_id"] for event in events}
    rows = Release.objects.in_workspace(workspace_id).filter(pk__in=ids)
    messages = dict(rows.values_list("pk", "message"))
    return {event.pk: messages.get(event.data["release_id"], "") for event in events}
