"""Rules of notifications: which kind an event has, and which members get it.

Apps add functions that find people by an event in `AppConfig.ready`, such as the authors of a release.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from personas.models import Event, NotificationDelivery, NotificationKind
from personas.roles import Permission, has_permission


@dataclass(frozen=True)
class NotificationRule:
    """Who is notified of an event: the members with a permission, and those of RECIPIENT_SOURCES."""

    kind: NotificationKind
    permission: Permission | None = None
    # Count further events in the unread notification instead of creating one for each.
    is_grouped: bool = False


RELEASE_UPDATE = NotificationRule(NotificationKind.RELEASE_UPDATED)
NOTIFICATION_RULES: dict[str, NotificationRule] = {
    "release.requested": NotificationRule(NotificationKind.REVIEW_REQUESTED, Permission.APPROVE),
    "release.review_requested": NotificationRule(NotificationKind.REVIEW_REQUESTED),
    "release.commented": NotificationRule(NotificationKind.COMMENTED),
    "memory.commented": NotificationRule(NotificationKind.COMMENTED),
    "version.commented": NotificationRule(NotificationKind.COMMENTED),
    "release.changes_requested": RELEASE_UPDATE,
    "release.approved": RELEASE_UPDATE,
    "release.rejected": RELEASE_UPDATE,
    "release.withdrawn": RELEASE_UPDATE,
    "release.voided": RELEASE_UPDATE,
    "release.released": RELEASE_UPDATE,
    # The recipients are the members who can approve: see `list_approver_ids`.
    "agent.review_lifted": RELEASE_UPDATE,
    "workspace.review_lifted": RELEASE_UPDATE,
    "memory.proposed": NotificationRule(
        NotificationKind.MEMORY_PROPOSED, Permission.APPROVE, is_grouped=True
    ),
    "context_file.waiting": NotificationRule(NotificationKind.FILE_WAITING, Permission.EDIT, is_grouped=True),
    "build.failed": NotificationRule(
        NotificationKind.BUILD_FAILED, Permission.MANAGE_SOURCES, is_grouped=True
    ),
    "key.expiring": NotificationRule(NotificationKind.KEY_EXPIRING, Permission.MANAGE_KEYS),
    "webhook.disabled": NotificationRule(NotificationKind.WEBHOOK_DISABLED, Permission.MANAGE_KEYS),
    "chain.broken": NotificationRule(NotificationKind.CHAIN_BROKEN, Permission.MANAGE_KEYS),
}
GROUPED_KINDS = frozenset(rule.kind for rule in NOTIFICATION_RULES.values() if rule.is_grouped)

# After one of these, nobody needs to review the release: unread requests for a review count as read.
REVIEW_END_TYPES = frozenset(
    {"release.approved", "release.rejected", "release.withdrawn", "release.voided", "release.released"}
)

# After one of these, an unread notification counts as read if nothing of its kind is open any more.
SETTLING_TYPES = {
    "memory.approved": NotificationKind.MEMORY_PROPOSED,
    "memory.rejected": NotificationKind.MEMORY_PROPOSED,
    "context_file.changed": NotificationKind.FILE_WAITING,
}
# By notification kind: a function that counts what is open in a workspace now.
OPEN_COUNTERS: dict[str, Callable[[int], int]] = {}

# By event type: a function that returns the ids of the users whom an event concerns.
RECIPIENT_SOURCES: dict[str, Callable[[Event], set[int]]] = {}
# By event type: a function that returns the ids of users who are notified of another event instead.
EXCLUDED_SOURCES: dict[str, Callable[[Event], set[int]]] = {}
# By first word of the event type: a function that returns a line of text for each event, by event id.
DETAIL_SOURCES: dict[str, Callable[[int, Sequence[Event]], dict[int, str]]] = {}

# Kinds that are sent by email unless the member chooses otherwise.
EMAILED_KINDS = frozenset(
    {
        NotificationKind.REVIEW_REQUESTED,
        NotificationKind.RELEASE_UPDATED,
        NotificationKind.COMMENTED,
        NotificationKind.KEY_EXPIRING,
        NotificationKind.WEBHOOK_DISABLED,
        NotificationKind.CHAIN_BROKEN,
    }
)


def get_default_delivery(kind: str) -> NotificationDelivery:
    return NotificationDelivery.EMAIL if kind in EMAILED_KINDS else NotificationDelivery.APP


def list_kinds_of_role(role: str) -> list[NotificationKind]:
    """Return the kinds that a member with this role can get."""
    return [kind for kind in NotificationKind if can_get_kind(role, kind)]


def can_get_kind(role: str, kind: str) -> bool:
    """Whether a role has a permission that a rule of the kind names; without such a rule, every role."""
    permissions = {
        rule.permission for rule in NOTIFICATION_RULES.values() if rule.kind == kind and rule.permission
    }
    return not permissions or any(has_permission(role, permission) for permission in permissions)
