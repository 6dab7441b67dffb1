"""The questions of the time machine: whom else a moment concerns, and what holds now instead."""

from collections.abc import Sequence
from datetime import datetime

from personas.models import Agent, Channel, Workspace
from prompts.models import LATEST, AgentPrompt, LedgerEntry, PromptLabel
from prompts.selectors_ledger import heavy
from prompts.services.replaying import Replay

BESIDE = 5


def fetches_around(prompt: AgentPrompt, at: datetime, *, but: int | None = None) -> list[LedgerEntry]:
    """The last fetches of this prompt up to a moment and the first after it, newest first."""
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    rows = rows.select_related("version").defer(*heavy("version"), "slots").exclude(pk=but or 0)
    later = list(rows.filter(at__gt=at).order_by("at", "pk")[:BESIDE])
    return [*reversed(later), *rows.filter(at__lte=at).order_by("-at", "-pk")[:BESIDE]]


def number_now(replay: Replay) -> int | None:
    """The number of the version that the same label leads to now; none where it leads nowhere."""
    prompt, label = replay.prompt, replay.label.partition("@")[0]
    if label == LATEST:
        return prompt.last_number
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    return rows.values_list("version__number", flat=True).first()


def latest_fetches(workspace: Workspace, count: int = 8) -> list[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(workspace).order_by("-pk")
    links = ("prompt__agent", "prompt__channel", "version")
    return list(rows.select_related(*links).defer(*heavy("version"), "slots")[:count])


def agent_choices(workspace: Workspace) -> Sequence[tuple[str, str]]:
    """All that ever had a prompt, archived ones too: the past is theirs as well."""
    rows = Agent.objects.in_workspace(workspace).filter(prompts__isnull=False).distinct()
    return [(slug, name) for slug, name in rows.order_by("name", "pk").values_list("slug", "name")]


def channel_choices(workspace: Workspace) -> Sequence[tuple[str, str]]:
    rows = Channel.objects.in_workspace(workspace).filter(prompts__isnull=False).distinct()
    return [(slug, name) for slug, name in rows.order_by("name", "pk").values_list("slug", "name")]


def found_prompt(workspace: Workspace, agent: str, channel: str) -> AgentPrompt | None:
    rows = AgentPrompt.objects.in_workspace(workspace).select_related("agent", "channel", "latest")
    return rows.filter(agent__slug=agent, channel__slug=channel).first()
