"""Comments on releases, and requests for changes."""

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.records.services import convert_save_errors
from prompts.errors import NotAllowed
from prompts.models import Release, ReleaseComment, ReleaseStatus
from prompts.publishing.releases.services import lock_release, log_release_event


@transaction.atomic
def comment_on_release(release: Release, *, text: str, by: Actor) -> ReleaseComment:
    """Add a comment to a release, whatever its status is."""
    comment = save_comment(release, text, by=by)
    log_release_event(release, "commented", by=by, extra={"comment_id": comment.pk})
    return comment


@transaction.atomic
def request_changes(release: Release, *, reason: str, by: Actor) -> Release:
    """Record that a reviewer wants changes. An approval is withdrawn; the timeline keeps it.

    The release stays open: a reviewer can approve it later, or its requester requests another one.
    """
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
    if by.user is None or by.user == release.requested_by:
        raise NotAllowed(
            _(
                "You requested this release, so you cannot request changes. Add a "
                "comment, or withdraw the release."
            )
        )
    comment = save_comment(release, reason, is_change_request=True, by=by)
    if release.status == ReleaseStatus.APPROVED:
        release.status, release.decided_at = ReleaseStatus.REQUESTED, None
        release.decided_by, release.decided_label = None, ""
        release.save()
    log_release_event(release, "changes requested", by=by, extra={"comment_id": comment.pk})
    return release


def save_comment(
    release: Release, text: str, *, by: Actor, is_change_request: bool = False
) -> ReleaseComment:
    comment = ReleaseComment(
        workspace_id=release.workspace_id,
        release=release,
        author=by.user,
        author_label=by.label,
        text=text.strip(),
        is_change_request=is_change_request,
    )
    with convert_save_errors():
        comment.full_clean(exclude=["author"])
        comment.save()
    return comment
