"""Roles of members and the permissions of each role."""

from enum import Enum

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """Role of a member in a workspace."""

    OWNER = "owner", _("Owner")
    ADMIN = "admin", _("Admin")
    EDITOR = "editor", _("Editor")
    REVIEWER = "reviewer", _("Reviewer")
    VIEWER = "viewer", _("Viewer")


class Permission(Enum):
    """Permission that a role can have. Templates use the value, as in `can.edit`."""

    READ = "read"
    EDIT = "edit"
    APPROVE = "approve"
    MANAGE_SOURCES = "manage_sources"
    MANAGE_KEYS = "manage_keys"
    MANAGE_MEMBERS = "manage_members"
    # Release without approval, in an emergency.
    OVERRIDE = "override"


ROLES_BY_PERMISSION: dict[Permission, frozenset[Role]] = {
    Permission.READ: frozenset(Role),
    Permission.EDIT: frozenset({Role.OWNER, Role.ADMIN, Role.EDITOR}),
    Permission.APPROVE: frozenset({Role.OWNER, Role.ADMIN, Role.REVIEWER}),
    Permission.MANAGE_SOURCES: frozenset({Role.OWNER, Role.ADMIN}),
    Permission.MANAGE_KEYS: frozenset({Role.OWNER, Role.ADMIN}),
    Permission.MANAGE_MEMBERS: frozenset({Role.OWNER}),
    Permission.OVERRIDE: frozenset({Role.OWNER, Role.ADMIN}),
}


def has_permission(role: str, permission: Permission) -> bool:
    """Return whether a role has a permission. An unknown role has no permissions."""
    return role in ROLES_BY_PERMISSION[permission]
