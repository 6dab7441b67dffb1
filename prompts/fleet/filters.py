"""What somebody wants to see of the fleet, read from the address; unknown words mean the default."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from personas.models import LAYOUTS, Channel
from prompts.fleet.prompt_status import AHEAD, ALL, HELD, OVER, PROBLEMS, STALE

NAME, CHANGED, TOKENS, TROUBLES = "", "changed", "tokens", "problems"
Options = list[tuple[str, str]]


def state_options() -> Options:
    return [
        (ALL, _("Every state")),
        (AHEAD, _("Ahead of production")),
        (PROBLEMS, _("Not built")),
        (OVER, _("Over budget")),
        (STALE, _("Bots behind")),
        (HELD, _("Held back")),
    ]


def sort_options() -> Options:
    return [
        (NAME, _("By name")),
        (CHANGED, _("Recently changed")),
        (TOKENS, _("Most tokens")),
        (TROUBLES, _("Most problems")),
    ]


@dataclass(frozen=True)
class Asked:
    """Words to search for, the choices made, and the page."""

    words: str = ""
    layout: str = ""
    channel: str = ""
    state: str = ALL
    sort: str = NAME
    page: int = 1

    @property
    def is_narrowed(self) -> bool:
        return bool(self.words or self.layout or self.channel or self.state)


def read(said: QueryDict, channels: Sequence[Channel]) -> Asked:
    number = said.get("page", "")
    return Asked(
        words=said.get("q", "").replace("\x00", "").strip()[:200],
        layout=one_of(said, "layout", LAYOUTS),
        channel=one_of(said, "channel", [channel.slug for channel in channels]),
        state=one_of(said, "state", [value for value, _words in state_options()]),
        sort=one_of(said, "sort", [value for value, _words in sort_options()]),
        page=int(number) if number.isascii() and number.isdecimal() and 0 < len(number) < 7 else 1,
    )


def one_of(said: QueryDict, name: str, known: Sequence[str]) -> str:
    value = said.get(name, "")
    return value if value in known else ""


def filters(asked: Asked, channels: Sequence[Channel]) -> list[dict[str, Any]]:
    """The choices beside the search box, as the component draws them."""
    layouts = [("", _("Every layout")), *((name, name) for name in LAYOUTS)]
    places = [("", _("Every channel")), *((channel.slug, channel.name) for channel in channels)]
    rows: list[tuple[str, str, Options, str]] = [
        ("state", _("State"), state_options(), asked.state),
        ("channel", _("Channel"), places, asked.channel),
        ("layout", _("Layout"), layouts, asked.layout),
        ("sort", _("Sort"), sort_options(), asked.sort),
    ]
    return [
        {"name": name, "label": label, "options": options, "value": value}
        for name, label, options, value in rows
    ]
