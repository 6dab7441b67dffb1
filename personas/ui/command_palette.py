"""What the command palette offers everywhere besides the places: deeds, themes, workspaces, the way out."""

from collections.abc import Iterable
from types import SimpleNamespace

from django.urls import reverse
from django.utils.translation import gettext as _

from personas.models import Workspace

Entry = dict[str, str]


def deeds(workspace: Workspace, can: SimpleNamespace) -> list[Entry]:
    """What changes something leads to a page that asks first, or is sent as a form: `post`."""
    entries = []
    if can.edit:
        rebuild = reverse("rebuilding:everything", args=[workspace.slug])
        entries.append(entry(_("Rebuild everything"), "refresh", url=rebuild))
    entries += [
        entry(_("Switch to the light theme"), "sun", theme="light"),
        entry(_("Switch to the dark theme"), "moon", theme="dark"),
        entry(_("Follow the system's theme"), "monitor", theme="system"),
        entry(_("Keyboard shortcuts"), "keyboard", opens="help"),
        entry(_("Your profile"), "profile", url=reverse("profile")),
        entry(_("New workspace"), "plus", url=reverse("new-workspace")),
        entry(_("Sign out"), "logout", post=reverse("account_logout")),
    ]
    return entries


def other_workspaces(memberships: Iterable[SimpleNamespace]) -> list[Entry]:
    """The doors to the other workspaces of this person."""
    return [
        entry(
            _("Switch to %(workspace)s") % {"workspace": membership.workspace.name},
            "building",
            url=membership.url,
            group=_("Workspaces"),
            hint=str(membership.role_label),
        )
        for membership in memberships
        if not membership.is_current
    ]


def entry(label: str, icon: str, **more: str) -> Entry:
    return {"label": label, "icon": icon, "group": _("Actions")} | more
