"""An agent's channels: what bots get on each, how large it is, and which settings made it so."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse

from personas.agents.selectors import list_agents_with_parts
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.agent_pages.cards import EMPTY_PERSONA_LABELS, PERSONA_FAMILIES, PERSONA_LABELS
from prompts.agent_pages.selectors import (
    ChannelStatus,
    ReaderSummary,
    get_recent_readers,
    list_channel_statuses,
)
from prompts.inputs.effective_settings import PERSONA_FIELDS, EffectiveSettings, EffectiveValue
from skills.agent_context.withheld import get_agent_files


@dataclass(frozen=True)
class ChannelPersona:
    """Identity, soul or profile on one channel."""

    label: str
    words: str
    level: str
    url: str = ""


@dataclass(frozen=True)
class ChannelCard:
    """One channel of an agent."""

    line: ChannelStatus
    budget: int | None
    who: Sequence[ChannelPersona]
    values: Sequence[EffectiveValue]
    readers: ReaderSummary


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(list_agents_with_parts(request.workspace), slug=agent)
    lines = list_channel_statuses(row)
    deciding = EffectiveSettings.load(row, get_agent_files(row).persona_files)
    readers = get_recent_readers(row, [line.prompt_id for line in lines if line.prompt_id])
    cards = [
        ChannelCard(
            line,
            deciding.get_token_budget(line.channel_id),
            list_channel_personas(request.workspace, deciding, line.channel_id),
            deciding.list_values(line.channel_id),
            readers.get(line.prompt_id or 0, ReaderSummary()),
        )
        for line in lines
    ]
    return render(
        request, "prompts/agents/channels.html", {"agent": row, "agent_lines": lines, "cards": cards}
    )


def list_channel_personas(
    workspace: Workspace, deciding: EffectiveSettings, channel: int
) -> list[ChannelPersona]:
    """Who the agent is on a channel, and who decided that."""
    rows, levels = deciding.get_persona(channel)
    found = []
    for name in PERSONA_FIELDS:
        record, file = rows[name], deciding.find_file(name) if levels[name] == "file" else None
        words = str(record) if record else file.file.path if file else str(EMPTY_PERSONA_LABELS[name])
        url = (
            reverse(f"{PERSONA_FAMILIES[name]}:detail", args=[workspace.slug, getattr(record, "slug", "")])
            if record
            else ""
        )
        found.append(ChannelPersona(str(PERSONA_LABELS[name]), words, levels[name], url))
    return found


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-channels")
