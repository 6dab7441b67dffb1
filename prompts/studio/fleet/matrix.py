"""The matrix of the fleet page: a row per agent, a column per channel, in each cell the production status."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.models import Channel, Workspace
from personas.ui.navigation import build_url_format
from prompts.studio.fleet.bot_activity import BotActivity
from prompts.studio.fleet.filters import FleetFilter
from prompts.studio.fleet.prompt_status import PromptStatus, build_state_condition, list_prompt_statuses


@dataclass(frozen=True)
class StatusFlag:
    """A short status label with a longer detail. `tone` sets the color, which adds no information."""

    tone: str
    label: str
    detail: str = ""


@dataclass(frozen=True)
class MatrixCell:
    """One agent on one channel."""

    prompt_id: int
    # Agent and channel, for screen readers that announce a link or checkbox without its row and column.
    label: str
    url: str
    timeline_url: str
    # Number of the production version; of the latest version if none is in production; 0 if none is built.
    number: int
    tokens: int
    budget: int | None
    since: datetime | None
    flags: Sequence[StatusFlag]
    bots: int
    # Whether the cell matches the filter; other cells are dimmed.
    is_match: bool


@dataclass(frozen=True)
class MatrixRow:
    """An agent with one cell per channel; None if the agent does not use the channel."""

    agent: Any
    cells: Sequence[tuple[Channel, MatrixCell | None]]

    @property
    def is_empty(self) -> bool:
        return not any(cell for _channel, cell in self.cells)


def build_matrix_rows(
    workspace: Workspace,
    agents: Sequence[Any],
    channels: Sequence[Channel],
    fleet_filter: FleetFilter,
    bots: BotActivity,
) -> list[MatrixRow]:
    """Build the rows of a page; all cells are loaded with one query."""
    condition = build_state_condition(fleet_filter.state, bots.outdated)
    statuses = list_prompt_statuses(
        workspace, [agent.pk for agent in agents], condition, fleet_filter.channel
    )
    statuses_by_cell = {(status["agent_id"], status["channel_id"]): status for status in statuses}
    columns = [channel for channel in channels if fleet_filter.channel in {"", channel.slug}]
    builder = CellBuilder(workspace, bots)

    def find_cell(agent: Any, channel: Channel) -> MatrixCell | None:
        status = statuses_by_cell.get((agent.pk, channel.pk))
        return builder.build_cell(status, agent, channel) if status else None

    return [
        MatrixRow(agent, [(channel, find_cell(agent, channel)) for channel in columns]) for agent in agents
    ]


class CellBuilder:
    """Builds matrix cells. URLs are reversed once, because a page has hundreds of cells."""

    def __init__(self, workspace: Workspace, bots: BotActivity) -> None:
        self.bots = bots
        self.get_version_url = build_url_format("versions:detail", workspace.slug, count=2)
        self.get_timeline_url = build_url_format("versions:list", workspace.slug)

    def build_cell(self, status: PromptStatus, agent: Any, channel: Channel) -> MatrixCell:
        number = status["production_number"] or status["latest_number"] or 0
        timeline_url = f"{self.get_timeline_url(agent.slug)}?channel={channel.slug}"
        outdated_bots = self.bots.outdated.get(status["pk"], 0)
        return MatrixCell(
            prompt_id=status["pk"],
            label=f"{agent.name}, {channel.name}",
            url=self.get_version_url(status["pk"], number) if number else timeline_url,
            timeline_url=timeline_url,
            number=number,
            tokens=status["production_tokens"] or status["latest_tokens"] or 0,
            budget=status["budget"],
            since=status["production_at"] or status["latest_at"],
            flags=list(list_status_flags(status, outdated_bots, is_waiting=agent.is_waiting)),
            bots=self.bots.recent.get(status["pk"], 0),
            is_match=status["is_match"],
        )


def list_status_flags(status: PromptStatus, outdated_bots: int, *, is_waiting: bool) -> Iterator[StatusFlag]:
    """Yield the flags of a cell, most severe first."""
    if status["problem"]:
        yield StatusFlag("error", _("Not built"), status["problem"])
    if status["is_pinned"]:
        yield StatusFlag(
            "warning", _("Pinned"), _("Production stays on this version until the next release.")
        )
    tokens, budget = status["production_tokens"] or status["latest_tokens"] or 0, status["budget"]
    if budget is not None and tokens > budget:
        yield StatusFlag(
            "warning", _("Over budget"), _("%(count)d tokens over budget.") % {"count": tokens - budget}
        )
    if outdated_bots:
        label = ngettext("%(count)d outdated bot", "%(count)d outdated bots", outdated_bots) % {
            "count": outdated_bots
        }
        yield StatusFlag("warning", label, _("The label has moved since their last fetch."))
    yield from list_release_flags(status)
    if is_waiting:
        yield StatusFlag("info", _("Rebuilding"), _("A change is waiting to be built."))


def list_release_flags(status: PromptStatus) -> Iterator[StatusFlag]:
    """Yield a flag if the latest version is not in production."""
    latest, production = status["latest_number"], status["production_number"]
    if latest is None:
        if not status["problem"]:
            yield StatusFlag("info", _("Not built yet"))
    elif production is None:
        yield StatusFlag(
            "warning",
            _("Not released"),
            _("Bots that fetch “production” get no prompt until the first release."),
        )
    elif latest > production:
        label = _("%(count)d ahead") % {"count": latest - production}
        detail = _("The latest version is %(latest)d. Production is version %(production)d.")
        yield StatusFlag("info", label, detail % {"latest": latest, "production": production})
