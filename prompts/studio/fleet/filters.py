"""Filters of the fleet page, parsed from the query string; unknown values mean the default."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from personas.models import LAYOUTS, Channel
from prompts.studio.fleet.prompt_status import (
    STATE_AHEAD,
    STATE_ALL,
    STATE_OUTDATED,
    STATE_OVER_BUDGET,
    STATE_PINNED,
    STATE_PROBLEMS,
)

SORT_BY_NAME, SORT_BY_CHANGE, SORT_BY_TOKENS, SORT_BY_PROBLEMS = "", "changed", "tokens", "problems"
FilterOptions = list[tuple[str, str]]


def list_state_options() -> FilterOptions:
    return [
        (STATE_ALL, _("All statuses")),
        (STATE_AHEAD, _("Ahead of production")),
        (STATE_PROBLEMS, _("Not built")),
        (STATE_OVER_BUDGET, _("Over budget")),
        (STATE_OUTDATED, _("Outdated bots")),
        (STATE_PINNED, _("Pinned")),
    ]


def list_sort_options() -> FilterOptions:
    return [
        (SORT_BY_NAME, _("By name")),
        (SORT_BY_CHANGE, _("Recently changed")),
        (SORT_BY_TOKENS, _("Most tokens")),
        (SORT_BY_PROBLEMS, _("Most problems")),
    ]


@dataclass(frozen=True)
class FleetFilter:
    """Search text, filters, sort order and page number."""

    search: str = ""
    layout: str = ""
    channel: str = ""
    state: str = STATE_ALL
    sort: str = SORT_BY_NAME
    page: int = 1

    @property
    def is_narrowed(self) -> bool:
        return bool(self.search or self.layout or self.channel or self.state)


def parse_fleet_filter(params: QueryDict, channels: Sequence[Channel]) -> FleetFilter:
    number = params.get("page", "")
    return FleetFilter(
        search=params.get("q", "").replace("\x00", "").strip()[:200],
        layout=get_known_value(params, "layout", LAYOUTS),
        channel=get_known_value(params, "channel", [channel.slug for channel in channels]),
        state=get_known_value(params, "state", [value for value, _label in list_state_options()]),
        sort=get_known_value(params, "sort", [value for value, _label in list_sort_options()]),
        page=int(number) if number.isascii() and number.isdecimal() and 0 < len(number) < 7 else 1,
    )


def get_known_value(params: QueryDict, name: str, known: Sequence[str]) -> str:
    value = params.get(name, "")
    return value if value in known else ""


def build_filter_fields(fleet_filter: FleetFilter, channels: Sequence[Channel]) -> list[dict[str, Any]]:
    """Build the select fields next to the search box for the filter component."""
    layout_options = [("", _("All layouts")), *((name, name) for name in LAYOUTS)]
    channel_options = [("", _("All channels")), *((channel.slug, channel.name) for channel in channels)]
    rows: list[tuple[str, str, FilterOptions, str]] = [
        ("state", _("Status"), list_state_options(), fleet_filter.state),
        ("channel", _("Channel"), channel_options, fleet_filter.channel),
        ("layout", _("Layout"), layout_options, fleet_filter.layout),
        ("sort", _("Sort"), list_sort_options(), fleet_filter.sort),
    ]
    return [
        {"name": name, "label": label, "options": options, "value": value}
        for name, label, options, value in rows
    ]
