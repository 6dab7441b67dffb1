"""The ways to narrow the inbox, as links with counts: the state of the page lives in its address."""

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from personas.tenancy.middleware import WorkspaceRequest
from skills.files.reasons import GRAVITY
from skills.inbox.selectors import Tally, Wanted


def choices(request: WorkspaceRequest, wanted: Wanted, tally: Tally, page: int) -> dict[str, Any]:
    address = reverse("inbox:list", args=[request.workspace.slug])
    return {
        "wanted": wanted,
        "tally": tally,
        "tabs": state_tabs(tally, wanted),
        "sources": source_choices(tally, wanted),
        "is_narrowed": wanted != Wanted(),
        "address": address,
        "back": f"{address}{query(wanted, page=str(page) if page > 1 else '')}",
        "poll": query(wanted, page=str(page)),
    }


def state_tabs(tally: Tally, wanted: Wanted) -> list[dict[str, Any]]:
    choices = [("", _("All"), tally.all_states), *((one, one.label, tally.states[one]) for one in GRAVITY)]
    return [
        {
            "label": label,
            "count": size,
            "is_current": wanted.state == value,
            "query": query(Wanted(value, wanted.source, wanted.words)),
        }
        for value, label, size in choices
    ]


def source_choices(tally: Tally, wanted: Wanted) -> list[dict[str, Any]]:
    """Where there is a choice: the sources with something that waits, and the chosen one."""
    slugs = sorted(tally.labels, key=lambda slug: tally.labels[slug].lower())
    if len(slugs) < 2 and not wanted.source:
        return []
    choices = [("", _("All sources"), tally.all_sources)]
    choices += [(slug, tally.labels[slug], tally.sources[slug]) for slug in slugs]
    return [
        {
            "label": label,
            "count": size,
            "is_current": wanted.source == value,
            "query": query(Wanted(wanted.state, value, wanted.words)),
        }
        for value, label, size in choices
    ]


def query(wanted: Wanted, **more: str) -> str:
    """The part of an address behind the path."""
    said = {"state": wanted.state, "source": wanted.source, "q": wanted.words} | more
    return "?" + urlencode({name: value for name, value in said.items() if value})
