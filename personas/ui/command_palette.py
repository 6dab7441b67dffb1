"""Command palette entries other than pages: actions, themes, workspaces, sign out."""

from collections.abc import Iterable
from types import SimpleNamespace

from django.urls import reverse
from django.utils.translation import gettext as _

from personas.models import Workspace

PaletteEntry = dict[str, str]


def list_commands(workspace: Workspace, can: SimpleNamespace) -> list[PaletteEntry]:
    """List the command palette entries for actions.

    No entry changes data with a GET request: `url` links to a page, and `post` is the URL of a POST request.
    """
    entries = []
    if can.edit:
        rebuild = reverse("builds:everything", args=[workspace.slug])
        entries.append(build_palette_entry(_("Rebuild everything"), "refresh", url=rebuild))
    entries += [
        build_palette_entry(_("Use the light theme"), "sun", theme="light"),
        build_palette_entry(_("Use the dark theme"), "moon", theme="dark"),
        build_palette_entry(_("Use the system theme"), "monitor", theme="system"),
        build_palette_entry(_("Keyboard shortcuts"), "keyboard", opens="help"),
        build_palette_entry(_("Your profile"), "profile", url=reverse("profile")),
        build_palette_entry(_("New workspace"), "plus", url=reverse("new-workspace")),
        build_palette_entry(_("Sign out"), "logout", post=reverse("account_logout")),
    ]
    return entries


def list_workspace_entries(memberships: Iterable[SimpleNamespace]) -> list[PaletteEntry]:
    """List one entry for each workspace of the user except the current one."""
    return [
        build_palette_entry(
            _("Switch to %(workspace)s") % {"workspace": membership.workspace.name},
            "building",
            url=membership.url,
            group=_("Workspaces"),
            hint=str(membership.role_label),
        )
        for membership in memberships
        if not membership.is_current
    ]


def build_palette_entry(label: str, icon: str, **extra: str) -> PaletteEntry:
    return {"label": label, "icon": icon, "group": _("Actions")} | extra
