"""Template tags that say why something is not offered, and who could do it."""

from typing import Any

from django import template
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from personas.models import Membership, Workspace
from personas.roles import ROLES_BY_PERMISSION, Permission, Role

register = template.Library()
# More names than this are no help.
MAX_SHOWN_NAMES = 3


@register.inclusion_tag("components/no_permission.html", takes_context=True)
def no_permission(context: dict[str, Any], permission: str, what: str) -> dict[str, Any]:
    """Nothing for those who may; for others one line: what they cannot do here, and whom to ask for it."""
    if getattr(context["can"], permission):
        return {"is_allowed": True}
    names = format_member_names(context["workspace"], ROLES_BY_PERMISSION[Permission(permission)])
    return {"is_allowed": False, "role": context["role"], "what": what, "people": names}


@register.simple_tag(takes_context=True)
def members_to_ask(context: dict[str, Any]) -> str:
    """Those who could have done what was refused, or else owners and admins."""
    refused = getattr(context["request"], "refused", None)
    roles = ROLES_BY_PERMISSION[refused] if refused else frozenset({Role.OWNER, Role.ADMIN})
    return format_member_names(context["workspace"], roles)


def format_member_names(workspace: Workspace, roles: frozenset[Role]) -> str:
    """Those closest to the work come first: an editor before an owner."""
    rows = Membership.objects.in_workspace(workspace).filter(role__in=roles).select_related("user")
    order = list(reversed(Role))
    members = sorted(rows[:50], key=lambda row: (order.index(Role(row.role)), row.joined_at))
    names = [row.user.name or row.user.email for row in members[:MAX_SHOWN_NAMES]]
    return get_text_list(names, _("or"))
