"""Lifting a review is an override: it requires the permission, a reason and a notification.

The rules for what production gets after that are in prompts.publishing.labels.approval.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.db.fields import LINE_BREAKS
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.events.services import record_event
from personas.models import Agent, Workspace
from personas.roles import Permission
from personas.tenancy.permissions import is_permitted
from personas.workspaces.models import ReleasePolicy

MAX_REASON_LENGTH = 500


def is_review_lifted(before: str, after: str) -> bool:
    return before == ReleasePolicy.REVIEWED and after != ReleasePolicy.REVIEWED


def check_review_lift(
    workspace: Workspace | int, field: str, before: str, values: Mapping[str, Any], *, by: Actor
) -> str:
    """Check a change of a release policy. Return the reason if it lifts a review, else an empty string.

    `field` is the name of the policy in `values`, which also contains `reason`. Raise InvalidInput if the
    actor may not override reviews, or gives no reason.
    """
    if not is_review_lifted(before, values.get(field, before)):
        return ""
    if not is_permitted(workspace, by, Permission.OVERRIDE):
        raise InvalidInput.on(field, describe_missing_permission(by))
    reason = LINE_BREAKS.sub(" ", str(values.get("reason") or "")).strip()
    if not reason:
        raise InvalidInput.on("reason", _("Enter the reason for lifting the review."))
    if len(reason) > MAX_REASON_LENGTH:
        raise InvalidInput.on("reason", _("Use at most %(count)s characters.") % {"count": MAX_REASON_LENGTH})
    return reason


def describe_missing_permission(by: Actor) -> str:
    if by.permissions is not None:
        return _("Lifting a review requires a key with the verb “override”.")
    return _("Only an owner or an admin can lift a review.")


def record_review_lift(agent: Agent, reason: str, *, by: Actor) -> None:
    """Write the audit event of a lifted review, and the event that notifies those who may approve."""
    write_audit_event(
        agent.workspace_id,
        "lifted review",
        agent.kind,
        agent.pk,
        str(agent),
        by=by,
        before={"release_policy": str(ReleasePolicy.REVIEWED)},
        after={"release_policy": agent.release_policy, "reason": reason},
    )
    record_event(agent.workspace_id, "agent.review_lifted", {"agent": agent.slug}, by=by)
