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
class NavItem:
    """A page in the menu: `adds` the words for making one there, `needs` who may see it, `key` its letter."""

    label: str | Promise
    route: str
    icon: str
    adds: str | Promise = ""
    needs: str = ""
    key: str = ""


# How many things wait at a place; an app adds its own when it is ready.
NAV_COUNTERS: dict[str, Callable[[Workspace], int]] = {}

NAV_GROUPS: tuple[tuple[str | Promise, tuple[NavItem, ...]], ...] = (
    (
        "",
        (
            NavItem(_("Fleet"), "home", "home", key="f"),
            NavItem(_("Agents"), "agents:list", "agents", _("New agent"), key="a"),
            NavItem(_("Studio"), "studio:home", "studio", key="s"),
            NavItem(_("Releases"), "releases:list", "release", _("New release"), key="r"),
        ),
    ),
    (
        _("Persona"),
        (
            NavItem(_("Identities"), "identities:list", "identity", _("New identity")),
            NavItem(_("Souls"), "souls:list", "soul", _("New soul")),
            NavItem(_("User profiles"), "user-profiles:list", "profile", _("New user profile")),
        ),
    ),
    (
        _("Knowledge and work"),
        (
            NavItem(_("Memories"), "memories:list", "memory", _("New memory"), key="m"),
            NavItem(_("Responsibilities"), "responsibilities:list", "duty", _("New responsibility")),
            NavItem(_("Tasks"), "tasks:list", "task", _("New task")),
        ),
    ),
    (
        _("Means"),
        (
            NavItem(_("Skills"), "skills:list", "skill", _("New skill")),
            NavItem(_("Tools"), "tools:list", "tool", _("New tool")),
            NavItem(_("Channels"), "channels:list", "channel", _("New channel")),
        ),
    ),
    (
        _("Context"),
        (
            NavItem(_("Inbox"), "inbox:list", "inbox", key="i"),
            NavItem(_("Sources"), "sources:list", "source"),
            NavItem(_("Rule sets"), "rule-sets:list", "rules"),
        ),
    ),
    (
        _("Record"),
        (
            NavItem(_("Time machine"), "time-machine:find", "moment", key="t"),
            NavItem(_("Ledger"), "ledger:list", "ledger", key="l"),
            NavItem(_("Proof"), "verify:show", "chain"),
        ),
    ),
    (
        _("Workspace"),
        (
            NavItem(_("Members"), "members:list", "members"),
            NavItem(_("Keys"), "keys:list", "key", _("New key"), needs="manage_keys", key="k"),
            NavItem(_("Audit log"), "audit", "audit"),
            NavItem(_("Prompt settings"), "prompt-settings:list", "rules"),
            NavItem(_("Erasures"), "erasures:list", "shield"),
            NavItem(_("Settings"), "workspace-settings", "settings"),
        ),
    ),
)


def build_navigation(
    workspace: Workspace, path: str, can: SimpleNamespace | None = None
) -> list[SimpleNamespace]:
    """The sidebar, with the current place marked."""
    groups = []
    for label, places in NAV_GROUPS:
        items = [build_nav_link(place, workspace, path) for place in places if is_item_visible(place, can)]
        groups.append(SimpleNamespace(label=label, items=items))
    return groups


@lru_cache(maxsize=4096)
def get_page_url(route: str, slug: str) -> str:
    """The address of a place; every page asks for some seventy, and they never change."""
    return reverse(route, args=[slug])


def is_item_visible(place: NavItem, can: SimpleNamespace | None) -> bool:
    """Whether a place is worth showing to somebody with these permissions."""
    return not place.needs or can is None or getattr(can, place.needs)


def build_nav_link(place: NavItem, workspace: Workspace, path: str) -> SimpleNamespace:
    url = get_page_url(place.route, workspace.slug)
    is_current = path == url if place.route == "home" else path.startswith(url)
    waiting = NAV_COUNTERS[place.route](workspace) if place.route in NAV_COUNTERS else 0
    return SimpleNamespace(
        label=place.label,
        url=url,
        icon=place.icon,
        key=place.key,
        is_current=is_current,
        count=waiting or None,
    )


def list_page_entries(workspace: Workspace, can: SimpleNamespace) -> list[dict[str, str]]:
    """Where one can go, and what one may add, from anywhere."""
    places = [place for _heading, group in NAV_GROUPS for place in group if is_item_visible(place, can)]
    hint, pages = gettext("Go to"), gettext("Pages")
    entries = [
        {
            "label": str(place.label),
            "hint": hint,
            "url": get_page_url(place.route, workspace.slug),
            "icon": place.icon,
            "group": pages,
        }
        for place in places
    ]
    if can.edit:
        entries += [build_create_entry(workspace, place) for place in places if place.adds]
    return entries


def build_create_entry(workspace: Workspace, place: NavItem) -> dict[str, str]:
    url = get_page_url(place.route.replace(":list", ":new"), workspace.slug)
    return {
        "label": str(place.adds),
        "hint": gettext("Create"),
        "url": url,
        "icon": "plus",
        "group": gettext("Actions"),
    }
