"""The matrix: a row per agent, and in each column what production is at, or nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.models import Channel, Workspace
from prompts.fleet.bot_activity import Bots
from prompts.fleet.filters import Asked
from prompts.fleet.prompt_status import Standing, standings_of, state_rule


@dataclass(frozen=True)
class Flag:
    """A short word of warning, with more of it for whoever asks; a tone is never the only sign."""

    tone: str
    words: str
    more: str = ""


@dataclass(frozen=True)
class Cell:
    """One agent on one channel."""

    prompt: int
    # Agent and channel, for those who hear a link or a box without its row and column.
    named: str
    url: str
    timeline: str
    # What bots get; while nothing was released, the latest version, and nought before the first build.
    number: int
    tokens: int
    budget: int | None
    since: datetime | None
    flags: Sequence[Flag]
    bots: int
    # What was filtered for; the others stand there quietly.
    is_match: bool


@dataclass(frozen=True)
class Row:
    """An agent with its cells, one per column; None where it does not speak."""

    agent: Any
    cells: Sequence[tuple[Channel, Cell | None]]

    @property
    def is_silent(self) -> bool:
        return not any(cell for _channel, cell in self.cells)


def rows_of(
    workspace: Workspace, agents: Sequence[Any], channels: Sequence[Channel], asked: Asked, bots: Bots
) -> list[Row]:
    """One question for all cells of a page."""
    rule = state_rule(asked.state, bots.behind)
    found = standings_of(workspace, [agent.pk for agent in agents], rule, asked.channel)
    standings = {(one["agent_id"], one["channel_id"]): one for one in found}
    columns = [channel for channel in channels if asked.channel in {"", channel.slug}]
    drawing = Drawing(workspace, bots)

    def cell(agent: Any, channel: Channel) -> Cell | None:
        one = standings.get((agent.pk, channel.pk))
        return drawing.cell(one, agent, channel) if one else None

    return [Row(agent, [(channel, cell(agent, channel)) for channel in columns]) for agent in agents]


class Drawing:
    """Makes cells; addresses are asked of the router once and then filled in, for there are hundreds."""

    def __init__(self, workspace: Workspace, bots: Bots) -> None:
        self.bots = bots
        version = reverse("versions:detail", args=[workspace.slug, 0, 0])
        self.version = version.replace("/0/versions/0/", "/{}/versions/{}/")
        # The last nought is the agent's: a workspace may be called so, too.
        before, _nought, after = reverse("versions:list", args=[workspace.slug, "0"]).rpartition("/0/")
        self.timeline = f"{before}/{{}}/{after}"

    def cell(self, one: Standing, agent: Any, channel: Channel) -> Cell:
        number = one["production_number"] or one["latest_number"] or 0
        timeline = f"{self.timeline.format(agent.slug)}?channel={channel.slug}"
        behind = self.bots.behind.get(one["pk"], 0)
        return Cell(
            prompt=one["pk"],
            named=f"{agent.name}, {channel.name}",
            url=self.version.format(one["pk"], number) if number else timeline,
            timeline=timeline,
            number=number,
            tokens=one["production_tokens"] or one["latest_tokens"] or 0,
            budget=one["budget"],
            since=one["production_at"] or one["latest_at"],
            flags=list(flags_of(one, behind, is_waiting=agent.is_waiting)),
            bots=self.bots.lately.get(one["pk"], 0),
            is_match=one["is_match"],
        )


def flags_of(one: Standing, behind: int, *, is_waiting: bool) -> Iterator[Flag]:
    """The gravest first."""
    if one["problem"]:
        yield Flag("error", _("Not built"), one["problem"])
    if one["is_held"]:
        yield Flag("warning", _("Held back"), _("Rolled back: builds leave production where it is."))
    tokens, budget = one["production_tokens"] or one["latest_tokens"] or 0, one["budget"]
    if budget is not None and tokens > budget:
        yield Flag("warning", _("Over budget"), _("%(count)d tokens too many.") % {"count": tokens - budget})
    if behind:
        words = ngettext("%(count)d bot behind", "%(count)d bots behind", behind) % {"count": behind}
        yield Flag("warning", words, _("Since their last fetch their label has moved on."))
    yield from progress_of(one)
    if is_waiting:
        yield Flag("info", _("Rebuilding"), _("A change waits to be built into it."))


def progress_of(one: Standing) -> Iterator[Flag]:
    """How far the latest version is from what bots get."""
    latest, production = one["latest_number"], one["production_number"]
    if latest is None:
        if not one["problem"]:
            yield Flag("info", _("Not built yet"))
    elif production is None:
        yield Flag("warning", _("Not released"), _("Bots get nothing here until the first release."))
    elif latest > production:
        words = _("%(count)d ahead") % {"count": latest - production}
        more = _("The latest version is %(latest)d, production is at %(production)d.")
        yield Flag("info", words, more % {"latest": latest, "production": production})
