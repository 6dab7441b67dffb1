"""The places of a workspace: one table that sidebar and command palette both read."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

from django.urls import reverse

from personas.models import Workspace


@dataclass(frozen=True)
class Place:
    """A page in the menu: `adds` what one can make there, `needs` who may see it, `key` its letter."""

    label: str
    route: str
    icon: str
    adds: str = ""
    needs: str = ""
    key: str = ""


# How many things wait at a place; an app adds its own when it is ready.
COUNTERS: dict[str, Callable[[Workspace], int]] = {}

GROUPS: tuple[tuple[str, tuple[Place, ...]], ...] = (
    (
        "",
        (
            Place("Fleet", "home", "home", key="f"),
            Place("Agents", "agents:list", "agents", "agent", key="a"),
            Place("Studio", "studio:home", "studio", key="s"),
            Place("Releases", "releases:list", "release", "release", key="r"),
        ),
    ),
    (
        "Persona",
        (
            Place("Identities", "identities:list", "identity", "identity"),
            Place("Souls", "souls:list", "soul", "soul"),
            Place("User profiles", "user-profiles:list", "profile", "user profile"),
        ),
    ),
    (
        "Knowledge and work",
        (
            Place("Memories", "memories:list", "memory", "memory", key="m"),
            Place("Responsibilities", "responsibilities:list", "duty", "responsibility"),
            Place("Tasks", "tasks:list", "task", "task"),
        ),
    ),
    (
        "Means",
        (
            Place("Skills", "skills:list", "skill", "skill"),
            Place("Tools", "tools:list", "tool", "tool"),
            Place("Channels", "channels:list", "channel", "channel"),
        ),
    ),
    (
        "Context",
        (
            Place("Inbox", "inbox:list", "inbox", key="i"),
            Place("Sources", "sources:list", "source"),
            Place("Rule sets", "rule-sets:list", "rules"),
        ),
    ),
    (
        "Record",
        (
            Place("Time machine", "time-machine:find", "moment", key="t"),
            Place("Ledger", "ledger:list", "ledger", key="l"),
            Place("Proof", "verify:show", "chain"),
        ),
    ),
    (
        "Workspace",
        (
            Place("Members", "members:list", "members"),
            Place("Keys", "keys:list", "key", "key", needs="manage_keys", key="k"),
            Place("Audit log", "audit", "audit"),
            Place("Prompt settings", "prompt-settings:list", "rules"),
            Place("Erasures", "erasures:list", "shield"),
            Place("Settings", "workspace-settings", "settings"),
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


def is_open(place: Place, can: SimpleNamespace | None) -> bool:
    """Whether a place is worth showing to somebody with these permissions."""
    return not place.needs or can is None or getattr(can, place.needs)


def nav_item(place: Place, workspace: Workspace, path: str) -> SimpleNamespace:
    url = reverse(place.route, args=[workspace.slug])
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
    places = [place for _, group in GROUPS for place in group if is_open(place, can)]
    entries = [
        {
            "label": place.label,
            "hint": "Go to",
            "url": reverse(place.route, args=[workspace.slug]),
            "icon": place.icon,
            "group": "Pages",
        }
        for place in places
    ]
    if can.edit:
        entries += [new_entry(workspace, place) for place in places if place.adds]
    return entries


def new_entry(workspace: Workspace, place: Place) -> dict[str, str]:
    url = reverse(place.route.replace(":list", ":new"), args=[workspace.slug])
    return {"label": f"New {place.adds}", "hint": "Create", "url": url, "icon": "plus", "group": "Actions"}
