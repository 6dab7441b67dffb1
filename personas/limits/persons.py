"""The person that a workspace counts for, and what that person may have.

A workspace counts for the user who created it, until another owner takes it over (`take_over_workspace` in
personas/workspaces/services.py) or removes that user. Nobody can make a workspace count for another user:
that person's other workspaces would have less.
"""

import time
from threading import Lock

from django.conf import settings
from django.utils.translation import gettext as _

from core.db.workspace_scope import all_workspaces
from personas.errors import DomainError
from personas.workspaces.models import User, Workspace

# How many seconds a process caches which user a workspace counts for, and the size of this cache.
REMEMBER_SECONDS, MAX_REMEMBERED = 30.0, 50_000
_remembered: dict[int, tuple[int | None, float]] = {}
_lock = Lock()


class WorkspaceLimitReached(DomainError):
    """As many workspaces count for the user as the operator allows."""

    code = "workspace_limit_reached"


def find_person_id(workspace_id: int) -> int | None:
    """Return the user that a workspace counts for. A change takes effect after REMEMBER_SECONDS at most."""
    now = time.monotonic()
    person_id, expires_at = _remembered.get(workspace_id, (None, 0.0))
    if expires_at > now:
        return person_id
    with all_workspaces():
        rows = Workspace.objects.filter(pk=workspace_id)
        person_id = rows.values_list("counted_for", flat=True).first()
    with _lock:
        if len(_remembered) >= MAX_REMEMBERED:
            _remembered.clear()
        _remembered[workspace_id] = person_id, now + REMEMBER_SECONDS
    return person_id


def forget_persons() -> None:
    """Forget what this process remembers. Other processes follow after REMEMBER_SECONDS."""
    with _lock:
        _remembered.clear()


def list_workspaces_of_person(workspace_id: int) -> list[int]:
    """Return the workspaces that count for the same person, this one included: they share turns in queues."""
    person_id = find_person_id(workspace_id)
    if person_id is None:
        return [workspace_id]
    with all_workspaces():
        rows = Workspace.objects.filter(counted_for=person_id, removed_at=None)
        return sorted({workspace_id, *rows.values_list("pk", flat=True)})


def get_share_key(workspace_id: int) -> str:
    """Return whose share a workspace uses: that of its person, or its own if it counts for nobody."""
    person_id = find_person_id(workspace_id)
    return f"workspace {workspace_id}" if person_id is None else f"person {person_id}"


def get_person_share() -> int:
    """Return how many workspaces' worth of requests and bytes a person may use."""
    return max(1, settings.DRAMATIS_PERSON_SHARE)


def check_workspace_limit(user: User) -> None:
    """Raise WorkspaceLimitReached if no further workspace may count for the user.

    The lock of the user's row lets one request at a time count. A deleted workspace counts until its rows are
    removed, so deleting and creating in turn does not avoid the limit.
    """
    with all_workspaces():
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        count = Workspace.objects.filter(counted_for=user, removed_at=None).count()
    default: int = settings.DRAMATIS_WORKSPACES_PER_PERSON
    limit = default if user.workspace_limit is None else user.workspace_limit
    if count < limit or (user.workspace_limit is None and not default):
        return
    message = _(
        "%(count)s workspaces count for %(person)s, and %(limit)s are allowed, including deleted ones that "
        "can still be restored. The operator sets this limit (DRAMATIS_WORKSPACES_PER_PERSON, or a number "
        "for one account)."
    )
    raise WorkspaceLimitReached(message % {"count": count, "person": user.email, "limit": limit})


def count_workspace_for(workspace: Workspace, user: User) -> User | None:
    """Let a locked workspace count for another user, and return for whom it counted.

    Only for something that this user does. Raise WorkspaceLimitReached if too many count for the user.
    """
    check_workspace_limit(user)
    before, workspace.counted_for = workspace.counted_for, user
    workspace.save(update_fields=["counted_for"])
    forget_persons()
    return before
