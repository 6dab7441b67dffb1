"""Queries of the replay pages: fetches around a time, adjacent label changes, and form choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet, Subquery

from personas.models import Agent, Channel, Workspace
from prompts.evidence.replay.services import Replay
from prompts.models import LATEST, AgentPrompt, LabelMove, LedgerEntry, PromptLabel, PromptVersion
from prompts.publishing.versions.selectors import list_heavy_columns

FETCHES_PER_SIDE = 5


@dataclass(frozen=True)
class LabelChange:
    """A move of a label: its time, and the number of the version that the label moved to."""

    at: datetime
    number: int


@dataclass(frozen=True)
class AdjacentChanges:
    """For the label of a replay: its current version number, and its previous and next change.

    The change that selected the replayed version is neither of them.
    """

    now: int | None = None
    before: LabelChange | None = None
    after: LabelChange | None = None


def list_fetches_around(
    prompt: AgentPrompt, at: datetime, *, exclude_id: int | None = None
) -> list[LedgerEntry]:
    """List the last fetches of this prompt up to a time and the first after it, newest first."""
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    rows = (
        rows.select_related("version")
        .defer(*list_heavy_columns("version"), "slots")
        .exclude(pk=exclude_id or 0)
    )
    later = list(rows.filter(at__gt=at).order_by("at", "pk")[:FETCHES_PER_SIDE])
    return [*reversed(later), *rows.filter(at__lte=at).order_by("-at", "-pk")[:FETCHES_PER_SIDE]]


def get_label_name(replay: Replay) -> str:
    """Return the requested label without the version that a client pinned after “@”."""
    return replay.label.partition("@")[0]


def get_adjacent_changes(replay: Replay) -> AdjacentChanges:
    """Load the label changes around the replayed time with one query.

    A fetch by version number has no label, so the result is empty.
    """
    label, prompt = get_label_name(replay), replay.prompt
    if not label:
        return AdjacentChanges()
    moves, time_field, number_field = get_label_history(prompt, label)
    earlier = moves.filter(**{f"{time_field}__lte": replay.at}).order_by(f"-{time_field}", f"-{number_field}")
    later = moves.filter(**{f"{time_field}__gt": replay.at}).order_by(time_field, number_field)
    # The newest row up to the replayed time is the version in effect then; the second newest is the previous
    # version of the label.
    before, after = earlier[1:2], later[:1]
    rows = (
        AgentPrompt.objects.in_workspace(prompt.workspace_id)
        .filter(pk=prompt.pk)
        .annotate(
            now=build_current_number(prompt, label),
            before_at=Subquery(before.values(time_field)),
            before_number=Subquery(before.values(number_field)),
            after_at=Subquery(after.values(time_field)),
            after_number=Subquery(after.values(number_field)),
        )
    )
    values = rows.values("now", "before_at", "before_number", "after_at", "after_number").get()
    return AdjacentChanges(
        values["now"],
        build_label_change(values["before_at"], values["before_number"]),
        build_label_change(values["after_at"], values["after_number"]),
    )


def build_current_number(prompt: AgentPrompt, label: str) -> Subquery | F:
    if label == LATEST:
        return F("last_number")
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    return Subquery(rows.values("version__number")[:1])


def build_label_change(at: datetime | None, number: int | None) -> LabelChange | None:
    return LabelChange(at, number) if at is not None and number is not None else None


def get_label_history(prompt: AgentPrompt, label: str) -> tuple[QuerySet[Any], str, str]:
    """Return the history of a label, with the names of the fields for the time and the version number.

    The history consists of label moves or, for `latest`, of the versions themselves.
    """
    if label == LATEST:
        versions = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
        return versions, "created_at", "number"
    moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    return moves.filter(version__isnull=False), "at", "version__number"


def list_latest_fetches(workspace: Workspace, count: int = 8) -> list[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(workspace).order_by("-pk")
    links = ("prompt__agent", "prompt__channel", "version")
    return list(rows.select_related(*links).defer(*list_heavy_columns("version"), "slots")[:count])


def list_agent_choices(workspace: Workspace) -> Sequence[tuple[str, str]]:
    """List all agents that ever had a prompt, including archived ones."""
    rows = Agent.objects.in_workspace(workspace).filter(prompts__isnull=False).distinct()
    return [(slug, name) for slug, name in rows.order_by("name", "pk").values_list("slug", "name")]


def list_channel_choices(workspace: Workspace) -> Sequence[tuple[str, str]]:
    rows = Channel.objects.in_workspace(workspace).filter(prompts__isnull=False).distinct()
    return [(slug, name) for slug, name in rows.order_by("name", "pk").values_list("slug", "name")]


def list_channels_by_agent(workspace: Workspace) -> dict[str, list[str]]:
    """Return the slugs of the channels on which each agent ever had a prompt."""
    rows = AgentPrompt.objects.in_workspace(workspace).order_by("channel__name", "pk")
    channels: dict[str, list[str]] = {}
    for agent, channel in rows.values_list("agent__slug", "channel__slug"):
        channels.setdefault(agent, []).append(channel)
    return channels


def find_prompt_by_slugs(workspace: Workspace, agent: str, channel: str) -> AgentPrompt | None:
    rows = AgentPrompt.objects.in_workspace(workspace).select_related("agent", "channel", "latest")
    return rows.filter(agent__slug=agent, channel__slug=channel).first()
