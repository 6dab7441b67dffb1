"""Template tags that say why something is not offered, and who could do it."""

from typing import Any

from django import template
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from personas.models import Membership, Workspace
from personas.roles import ALLOWED, Permission, Role

register = template.Library()
# More names than this are no help.
SHOWN = 3


@register.inclusion_tag("components/no_permission.html", takes_context=True)
def no_permission(context: dict[str, Any], permission: str, what: str) -> dict[str, Any]:
    """Nothing for those who may; for others one line: what they cannot do here, and whom to ask for it."""
    if getattr(context["can"], permission):
        return {"is_allowed": True}
    names = names_of(context["workspace"], ALLOWED[Permission(permission)])
    return {"is_allowed": False, "role": context["role"], "what": what, "people": names}


@register.simple_tag(takes_context=True)
def helpers(context: dict[str, Any]) -> str:
    """Those who could have done what was refused, or else owners and admins."""
    refused = getattr(context["request"], "refused", None)
    roles = ALLOWED[refused] if refused else frozenset({Role.OWNER, Role.ADMIN})
    return names_of(context["workspace"], roles)


def names_of(workspace: Workspace, roles: frozenset[Role]) -> str:
    """Those closest to the work come first: an editor before an owner."""
    rows = Membership.objects.in_workspace(workspace).filter(role__in=roles).select_related("user")
    order = list(reversed(Role))
    found = sorted(rows[:50], key=lambda row: (order.index(Role(row.role)), row.joined_at))
    names = [row.user.name or row.user.email for row in found[:SHOWN]]
    return get_text_list(names, _("or"))
