"""Navigation of a workspace: one table of pages for the sidebar and the command palette."""

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
    """A page in the navigation.

    `create_label` is the label of the command palette entry that creates a record, `permission` is required
    to see the page, and `key` is the letter of the page's keyboard shortcut. `related` are the first words
    of other paths whose pages belong to it: the sidebar marks it as current there too.
    """

    label: str | Promise
    route: str
    icon: str
    create_label: str | Promise = ""
    permission: str = ""
    key: str = ""
    related: tuple[str, ...] = ()


# Maps a route to the function that counts its pending items; the sidebar shows the number next to the link.
# Apps register their functions in `AppConfig.ready`.
NAV_COUNTERS: dict[str, Callable[[Workspace], int]] = {}


@dataclass(frozen=True)
class NavGroup:
    """Pages of the sidebar. A group with a label is folded until one of its pages is open."""

    items: tuple[NavItem, ...]
    label: str | Promise = ""
    icon: str = ""


# Nine entries are visible while the groups are folded; they fit on a screen that is 768 pixels high.
NAV_GROUPS: tuple[NavGroup, ...] = (
    NavGroup(
        (
            NavItem(_("Fleet"), "home", "home", key="f"),
            NavItem(
                _("Agents"),
                "agents:list",
                "agents",
                _("New agent"),
                key="a",
                related=("prompts", "quick-start"),
            ),
            NavItem(_("Studio"), "studio:home", "studio", key="s"),
            NavItem(_("Releases"), "releases:list", "release", _("New release"), key="r"),
            NavItem(_("Inbox"), "inbox:list", "inbox", key="i", related=("files",)),
        ),
    ),
    NavGroup(
        (
            NavItem(_("Identities"), "identities:list", "identity", _("New identity")),
            NavItem(_("Souls"), "souls:list", "soul", _("New soul")),
            NavItem(_("User profiles"), "user-profiles:list", "profile", _("New user profile")),
            NavItem(_("Memories"), "memories:list", "memory", _("New memory"), key="m"),
            NavItem(_("Responsibilities"), "responsibilities:list", "duty", _("New responsibility")),
            NavItem(_("Tasks"), "tasks:list", "task", _("New task")),
            NavItem(_("Skills"), "skills:list", "skill", _("New skill")),
            NavItem(_("Tools"), "tools:list", "tool", _("New tool")),
            NavItem(_("Channels"), "channels:list", "channel", _("New channel")),
        ),
        _("Library"),
        "layers",
    ),
    NavGroup(
        (
            NavItem(_("Sources"), "sources:list", "source"),
            NavItem(_("Discovery rules"), "rule-sets:list", "rules"),
        ),
        _("Context"),
        "source",
    ),
    NavGroup(
        (
            NavItem(_("Replay"), "replay:find", "moment", key="t"),
            NavItem(_("Ledger"), "ledger:list", "ledger", key="l", related=("bots",)),
            NavItem(_("Integrity"), "integrity:show", "chain"),
            NavItem(_("Audit log"), "audit", "audit"),
            NavItem(_("Erasures"), "erasures:list", "shield"),
        ),
        _("Audit"),
        "audit",
    ),
    NavGroup(
        (
            NavItem(_("Members"), "members:list", "members"),
            NavItem(_("API keys"), "api-keys:list", "key", _("New key"), permission="manage_keys", key="k"),
            NavItem(_("Webhooks"), "webhooks:list", "link", permission="manage_keys"),
            NavItem(_("Events"), "events", "clock"),
            NavItem(_("Prompt settings"), "prompt-settings:list", "rules"),
            NavItem(_("Workspace settings"), "workspace-settings", "settings"),
        ),
        _("Settings"),
        "settings",
    ),
)


def build_navigation(
    workspace: Workspace, path: str, can: SimpleNamespace | None = None
) -> list[SimpleNamespace]:
    """Build the groups and links of the sidebar. The link to the page at `path` is marked as current."""
    groups = []
    for group in NAV_GROUPS:
        links = [build_nav_link(item, workspace, path) for item in group.items if is_item_visible(item, can)]
        is_current = any(link.is_current for link in links)
        groups.append(SimpleNamespace(label=group.label, icon=group.icon, items=links, is_current=is_current))
    return groups


@lru_cache(maxsize=4096)
def get_page_url(route: str, slug: str) -> str:
    """Return the URL of a page. Cached, because every response needs about seventy URLs that never change."""
    return reverse(route, args=[slug])


def build_url_format(route: str, *args: object, count: int = 1) -> Callable[..., str]:
    """Return a function that builds URLs of `route` from its last `count` arguments: numbers or slugs.

    `build_url_format("memories:detail", slug)(7)` reverses the URL once for all rows of a page.
    """
    rest, tail = reverse(route, args=[*args, *(["0"] * count)]), ""
    # Search from the right: the workspace slug in front of the arguments may also be "0".
    for _position in range(count):
        before, _zero, after = rest.rpartition("/0/")
        rest, tail = f"{before}/", f"{{}}/{after}{tail}"
    return f"{rest}{tail}".format


def is_item_visible(item: NavItem, can: SimpleNamespace | None) -> bool:
    return not item.permission or can is None or getattr(can, item.permission)


def build_nav_link(item: NavItem, workspace: Workspace, path: str) -> SimpleNamespace:
    url = get_page_url(item.route, workspace.slug)
    home = get_page_url("home", workspace.slug)
    prefixes = (url, *(f"{home}{word}/" for word in item.related))
    is_current = path == url if item.route == "home" else path.startswith(prefixes)
    count = NAV_COUNTERS[item.route](workspace) if item.route in NAV_COUNTERS else 0
    return SimpleNamespace(
        label=item.label,
        url=url,
        icon=item.icon,
        key=item.key,
        is_current=is_current,
        count=count or None,
    )


# Everyday words by which the command palette also finds a page.
SEARCH_WORDS: dict[str, str | Promise] = {
    "home": _("dashboard overview rollback roll back undo outdated"),
    "releases:list": _("approve approval deploy publish review"),
    "inbox:list": _("files approve quarantine changes"),
    "members:list": _("invite user person people team role access"),
    "api-keys:list": _("api key token secret credentials bot"),
    "memories:list": _("approve facts knowledge"),
    "replay:find": _("time machine history what did the bot see"),
    "integrity:show": _("proof verify tamper hash"),
    "audit": _("log who changed history"),
    "erasures:list": _("erase delete gdpr personal data"),
    "prompt-settings:list": _("defaults layout limits"),
    "workspace-settings": _("rename workspace"),
    "rule-sets:list": _("rule set harness discovery"),
    "sources:list": _("folder files upload push"),
}


def list_page_entries(workspace: Workspace, can: SimpleNamespace) -> list[dict[str, str]]:
    """List the command palette entries that open a page or the form for a new record."""
    items = [item for group in NAV_GROUPS for item in group.items if is_item_visible(item, can)]
    hint, pages = gettext("Go to"), gettext("Pages")
    entries = [
        {
            "label": str(item.label),
            "hint": hint,
            "url": get_page_url(item.route, workspace.slug),
            "icon": item.icon,
            "group": pages,
            "words": str(SEARCH_WORDS.get(item.route, "")),
        }
        for item in items
    ]
    if can.edit:
        entries += [build_create_entry(workspace, item) for item in items if item.create_label]
    return entries


def build_create_entry(workspace: Workspace, item: NavItem) -> dict[str, str]:
    url = get_page_url(item.route.replace(":list", ":new"), workspace.slug)
    return {
        "label": str(item.create_label),
        "hint": gettext("Create"),
        "url": url,
        "icon": "plus",
        "group": gettext("Actions"),
    }
