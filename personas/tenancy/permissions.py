"""What the author of a change may do, for checks inside services."""

from personas.actors import SYSTEM_ACTOR, Actor
from personas.models import Membership, Workspace
from personas.roles import Permission, has_permission


def is_permitted(workspace: Workspace | int, by: Actor, permission: Permission) -> bool:
    """Return whether the author of a change has a permission.

    A key has the permissions of its verbs: the role of the member who created it never adds one. Without a
    key, the role counts. Bots and people outside the workspace have none.
    """
    if by == SYSTEM_ACTOR:
        return True
    if by.permissions is not None:
        return permission in by.permissions
    if by.user is None or by.is_bot:
        return False
    roles = Membership.objects.in_workspace(workspace).filter(user=by.user).values_list("role", flat=True)
    return has_permission(roles.first() or "", permission)
