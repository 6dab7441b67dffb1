"""The matrix: a row per agent, and in each column what production is at, or nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.models import Channel, Workspace
from prompts.fleet.bot_activity import BotActivity
from prompts.fleet.filters import FleetFilter
from prompts.fleet.prompt_status import PromptStatus, build_state_condition, list_prompt_statuses


@dataclass(frozen=True)
class StatusFlag:
    """A short word of warning, with more of it for whoever asks; a tone is never the only sign."""

    tone: str
    words: str
    more: str = ""


@dataclass(frozen=True)
class MatrixCell:
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
    flags: Sequence[StatusFlag]
    bots: int
    # What was filtered for; the others stand there quietly.
    is_match: bool


@dataclass(frozen=True)
class MatrixRow:
    """An agent with its cells, one per column; None where it does not speak."""

    agent: Any
    cells: Sequence[tuple[Channel, MatrixCell | None]]

    @property
    def is_silent(self) -> bool:
        return not any(cell for _channel, cell in self.cells)


def build_matrix_rows(
    workspace: Workspace,
    agents: Sequence[Any],
    channels: Sequence[Channel],
    asked: FleetFilter,
    bots: BotActivity,
) -> list[MatrixRow]:
    """One question for all cells of a page."""
    rule = build_state_condition(asked.state, bots.behind)
    found = list_prompt_statuses(workspace, [agent.pk for agent in agents], rule, asked.channel)
    standings = {(one["agent_id"], one["channel_id"]): one for one in found}
    columns = [channel for channel in channels if asked.channel in {"", channel.slug}]
    drawing = CellBuilder(workspace, bots)

    def cell(agent: Any, channel: Channel) -> MatrixCell | None:
        one = standings.get((agent.pk, channel.pk))
        return drawing.cell(one, agent, channel) if one else None

    return [MatrixRow(agent, [(channel, cell(agent, channel)) for channel in columns]) for agent in agents]


class CellBuilder:
    """Makes cells; addresses are asked of the router once and then filled in, for there are hundreds."""

    def __init__(self, workspace: Workspace, bots: BotActivity) -> None:
        self.bots = bots
        version = reverse("versions:detail", args=[workspace.slug, 0, 0])
        self.version = version.replace("/0/versions/0/", "/{}/versions/{}/")
        # The last nought is the agent's: a workspace may be called so, too.
        before, _nought, after = reverse("versions:list", args=[workspace.slug, "0"]).rpartition("/0/")
        self.timeline = f"{before}/{{}}/{after}"

    def cell(self, one: PromptStatus, agent: Any, channel: Channel) -> MatrixCell:
        number = one["production_number"] or one["latest_number"] or 0
        timeline = f"{self.timeline.format(agent.slug)}?channel={channel.slug}"
        behind = self.bots.behind.get(one["pk"], 0)
        return MatrixCell(
            prompt=one["pk"],
            named=f"{agent.name}, {channel.name}",
            url=self.version.format(one["pk"], number) if number else timeline,
            timeline=timeline,
            number=number,
            tokens=one["production_tokens"] or one["latest_tokens"] or 0,
            budget=one["budget"],
            since=one["production_at"] or one["latest_at"],
            flags=list(list_status_flags(one, behind, is_waiting=agent.is_waiting)),
            bots=self.bots.lately.get(one["pk"], 0),
            is_match=one["is_match"],
        )


def list_status_flags(one: PromptStatus, behind: int, *, is_waiting: bool) -> Iterator[StatusFlag]:
    """The gravest first."""
    if one["problem"]:
        yield StatusFlag("error", _("Not built"), one["problem"])
    if one["is_held"]:
        yield StatusFlag("warning", _("Held back"), _("Rolled back: builds leave production where it is."))
    tokens, budget = one["production_tokens"] or one["latest_tokens"] or 0, one["budget"]
    if budget is not None and tokens > budget:
        yield StatusFlag(
            "warning", _("Over budget"), _("%(count)d tokens too many.") % {"count": tokens - budget}
        )
    if behind:
        words = ngettext("%(count)d bot behind", "%(count)d bots behind", behind) % {"count": behind}
        yield StatusFlag("warning", words, _("Since their last fetch their label has moved on."))
    yield from list_release_flags(one)
    if is_waiting:
        yield StatusFlag("info", _("Rebuilding"), _("A change waits to be built into it."))


def list_release_flags(one: PromptStatus) -> Iterator[StatusFlag]:
    """How far the latest version is from what bots get."""
    latest, production = one["latest_number"], one["production_number"]
    if latest is None:
        if not one["problem"]:
            yield StatusFlag("info", _("Not built yet"))
    elif production is None:
        yield StatusFlag("warning", _("Not released"), _("Bots get nothing here until the first release."))
    elif latest > production:
        words = _("%(count)d ahead") % {"count": latest - production}
        more = _("The latest version is %(latest)d, production is at %(production)d.")
        yield StatusFlag("info", words, more % {"latest": latest, "production": production})
