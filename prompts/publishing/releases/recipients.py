"""Whom the events of releases concern, and a line of text for each, for notifications."""

from collections.abc import Callable, Sequence

from personas.models import Event, Membership
from personas.roles import Permission, has_permission
from prompts.models import Release, ReleaseComment, ReleaseReviewer
from prompts.publishing.releases.authors import list_release_authors
from prompts.publishing.releases.selectors import list_release_items

MAX_COMMENT_LENGTH = 200


def list_release_people(event: Event) -> set[int]:
    """Return the ids of the user who requested a release and of the authors of its changes."""
    rows = Release.objects.in_workspace(event.workspace_id)
    release = rows.filter(pk=event.data["release_id"]).first()
    if release is None:
        return set()
    requester = {release.requested_by_id} if release.requested_by_id else set()
    return requester | list_release_authors(release, list_release_items(release))


def list_requested_reviewers(event: Event) -> set[int]:
    """Return the ids of the users who were asked by name to review a release."""
    rows = ReleaseReviewer.objects.in_workspace(event.workspace_id)
    return set(rows.filter(release=event.data["release_id"]).values_list("user_id", flat=True))


def list_new_reviewers(event: Event) -> set[int]:
    """Return the ids of the users whom this event asked to review a release."""
    rows = Membership.objects.in_workspace(event.workspace_id).filter(pk__in=event.data["member_ids"])
    return set(rows.values_list("user_id", flat=True))


def list_discussion_people(event: Event) -> set[int]:
    """Return the ids of the users whom a comment concerns: also reviewers, and who commented before."""
    comments = ReleaseComment.objects.in_workspace(event.workspace_id).filter(
        release=event.data["release_id"], author__isnull=False
    )
    authors = set(comments.values_list("author_id", flat=True))
    return list_release_people(event) | list_requested_reviewers(event) | authors


def list_approver_ids(event: Event) -> set[int]:
    """Return the ids of the users who may approve releases."""
    rows = Membership.objects.in_workspace(event.workspace_id)
    return {member.user_id for member in rows if has_permission(member.role, Permission.APPROVE)}


RELEASE_RECIPIENTS: dict[str, Callable[[Event], set[int]]] = {
    "release.review_requested": list_new_reviewers,
    "release.commented": list_discussion_people,
    "release.changes_requested": list_release_people,
    "release.approved": list_release_people,
    "release.rejected": list_release_people,
    "release.withdrawn": list_release_people,
    "release.voided": list_release_people,
    "release.released": list_release_people,
    "agent.review_lifted": list_approver_ids,
    "workspace.review_lifted": list_approver_ids,
}


def list_release_details(workspace_id: int, events: Sequence[Event]) -> dict[int, str]:
    """Return the comments of these events; of other events, the messages of their releases."""
    ids = {event.data["release_id"] for event in events}
    messages = dict(
        Release.objects.in_workspace(workspace_id).filter(pk__in=ids).values_list("pk", "message")
    )
    comment_ids = [event.data["comment_id"] for event in events if "comment_id" in event.data]
    rows = ReleaseComment.objects.in_workspace(workspace_id).filter(pk__in=comment_ids)
    texts = dict(rows.values_list("pk", "text")) if comment_ids else {}
    return {
        event.pk: " ".join(
            (texts.get(event.data.get("comment_id")) or messages.get(event.data["release_id"], "")).split()
        )[:MAX_COMMENT_LENGTH]
        for event in events
    }
