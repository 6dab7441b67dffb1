"""The places of a workspace: one table that sidebar and command palette both read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Workspace


@dataclass(frozen=True)
class Place:
    """A page in the menu: `adds` the words for making one there, `needs` who may see it, `key` its letter."""

    label: str | Promise
    route: str
    icon: str
    adds: str | Promise = ""
    needs: str = ""
    key: str = ""


# How many things wait at a place; an app adds its own when it is ready.
COUNTERS: dict[str, Callable[[Workspace], int]] = {}

GROUPS: tuple[tuple[str | Promise, tuple[Place, ...]], ...] = (
    (
        "",
        (
            Place(_("Fleet"), "home", "home", key="f"),
            Place(_("Agents"), "agents:list", "agents", _("New agent"), key="a"),
            Place(_("Studio"), "studio:home", "studio", key="s"),
            Place(_("Releases"), "releases:list", "release", _("New release"), key="r"),
        ),
    ),
    (
        _("Persona"),
        (
            Place(_("Identities"), "identities:list", "identity", _("New identity")),
            Place(_("Souls"), "souls:list", "soul", _("New soul")),
            Place(_("User profiles"), "user-profiles:list", "profile", _("New user profile")),
        ),
    ),
    (
        _("Knowledge and work"),
        (
            Place(_("Memories"), "memories:list", "memory", _("New memory"), key="m"),
            Place(_("Responsibilities"), "responsibilities:list", "duty", _("New responsibility")),
            Place(_("Tasks"), "tasks:list", "task", _("New task")),
        ),
    ),
    (
        _("Means"),
        (
            Place(_("Skills"), "skills:list", "skill", _("New skill")),
            Place(_("Tools"), "tools:list", "tool", _("New tool")),
            Place(_("Channels"), "channels:list", "channel", _("New channel")),
        ),
    ),
    (
        _("Context"),
        (
            Place(_("Inbox"), "inbox:list", "inbox", key="i"),
            Place(_("Sources"), "sources:list", "source"),
            Place(_("Rule sets"), "rule-sets:list", "rules"),
        ),
    ),
    (
        _("Record"),
        (
            Place(_("Time machine"), "time-machine:find", "moment", key="t"),
            Place(_("Ledger"), "ledger:list", "ledger", key="l"),
            Place(_("Proof"), "verify:show", "chain"),
        ),
    ),
    (
        _("Workspace"),
        (
            Place(_("Members"), "members:list", "members"),
            Place(_("Keys"), "keys:list", "key", _("New key"), needs="manage_keys", key="k"),
            Place(_("Audit log"), "audit", "audit"),
            Place(_("Prompt settings"), "prompt-settings:list", "rules"),
            Place(_("Erasures"), "erasures:list", "shield"),
            Place(_("Settings"), "workspace-settings", "settings"),
        ),
    ),
)


def navigation(workspace: Workspace, path: str, can: SimpleNamespace | None = None) -> list[SimpleNamespace]:
    """The sidebar, with the current place marked."""
    groups = []
    for label, places in GROUPS:
        items = [nav_item(place, workspace, path) for place in places if is_open(place, can)]
        groups.append(SimpleNamespace(label=label, items=items))
    return groups


@lru_cache(maxsize=4096)
def door(route: str, slug: str) -> str:
    """The address of a place; every page asks for some seventy, and they never change."""
    return reverse(route, args=[slug])


def is_open(place: Place, can: SimpleNamespace | None) -> bool:
    """Whether a place is worth showing to somebody with these permissions."""
    return not place.needs or can is None or getattr(can, place.needs)


def nav_item(place: Place, workspace: Workspace, path: str) -> SimpleNamespace:
    url = door(place.route, workspace.slug)
    is_current = path == url if place.route == "home" else path.startswith(url)
    waiting = COUNTERS[place.route](workspace) if place.route in COUNTERS else 0
    return SimpleNamespace(
        label=place.label,
        url=url,
        icon=place.icon,
        key=place.key,
        is_current=is_current,
        count=waiting or None,
    )


def palette_entries(workspace: Workspace, can: SimpleNamespace) -> list[dict[str, str]]:
    """Where one can go, and what one may add, from anywhere."""
    places = [place for _heading, group in GROUPS for place in group if is_open(place, can)]
    hint, pages = gettext("Go to"), gettext("Pages")
    entries = [
        {
            "label": str(place.label),
            "hint": hint,
            "url": door(place.route, workspace.slug),
            "icon": place.icon,
            "group": pages,
        }
        for place in places
    ]
    if can.edit:
        entries += [new_entry(workspace, place) for place in places if place.adds]
    return entries


def new_entry(workspace: Workspace, place: Place) -> dict[str, str]:
    url = door(place.route.replace(":list", ":new"), workspace.slug)
    return {
        "label": str(place.adds),
        "hint": gettext("Create"),
        "url": url,
        "icon": "plus",
        "group": gettext("Actions"),
    }
