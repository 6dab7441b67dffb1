"""Template tags that explain a missing permission and name members who have it."""

from typing import Any

from django import template
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from personas.models import Membership, Workspace
from personas.roles import ROLES_BY_PERMISSION, Permission, Role

register = template.Library()
MAX_SHOWN_NAMES = 3


@register.inclusion_tag("components/no_permission.html", takes_context=True)
def no_permission(context: dict[str, Any], permission: str, what: str) -> dict[str, Any]:
    """Render one line for members without the permission: what they cannot do, and whom to ask."""
    if getattr(context["can"], permission):
        return {"is_allowed": True}
    names = format_member_names(context["workspace"], ROLES_BY_PERMISSION[Permission(permission)])
    return {"is_allowed": False, "role": context["role"], "what": what, "people": names}


@register.simple_tag(takes_context=True)
def members_to_ask(context: dict[str, Any]) -> str:
    """Name members who have the permission that this request lacked.

    If the request was refused for another reason, name owners and admins.
    """
    refused = getattr(context["request"], "denied_permission", None)
    roles = ROLES_BY_PERMISSION[refused] if refused else frozenset({Role.OWNER, Role.ADMIN})
    return format_member_names(context["workspace"], roles)


def format_member_names(workspace: Workspace, roles: frozenset[Role]) -> str:
    """Format the names of up to three members with these roles, joined with “or”.

    Members with fewer permissions come first, so that a user asks an editor rather than an owner.
    """
    rows = Membership.objects.in_workspace(workspace).filter(role__in=roles).select_related("user")
    order = list(reversed(Role))
    members = sorted(rows[:50], key=lambda row: (order.index(Role(row.role)), row.joined_at, row.pk))
    names = [row.user.name or row.user.email for row in members[:MAX_SHOWN_NAMES]]
    return get_text_list(names, _("or"))
