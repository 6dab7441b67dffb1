"""The channels tab of an agent: production version, size, recent readers and effective settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse

from personas.agents.selectors import list_agents_with_parts
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.publishing.inputs.effective_settings import PERSONA_FIELDS, EffectiveSettings, EffectiveValue
from prompts.studio.agent_pages.cards import EMPTY_PERSONA_LABELS, PERSONA_FAMILIES, PERSONA_LABELS
from prompts.studio.agent_pages.selectors import (
    ChannelStatus,
    ReaderSummary,
    get_recent_readers,
    list_channel_statuses,
)
from skills.agent_context.withheld import get_agent_files


@dataclass(frozen=True)
class ChannelPersona:
    """Identity, soul or user profile of the agent on one channel."""

    label: str
    title: str
    level: str
    url: str = ""


@dataclass(frozen=True)
class ChannelCard:
    """One channel on the channels tab."""

    status: ChannelStatus
    budget: int | None
    personas: Sequence[ChannelPersona]
    values: Sequence[EffectiveValue]
    readers: ReaderSummary


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(list_agents_with_parts(request.workspace), slug=agent)
    statuses = list_channel_statuses(row)
    effective_settings = EffectiveSettings.load(row, get_agent_files(row).persona_files)
    readers = get_recent_readers(row, [status.prompt_id for status in statuses if status.prompt_id])
    cards = [
        ChannelCard(
            status,
            effective_settings.get_token_budget(status.channel_id),
            list_channel_personas(request.workspace, effective_settings, status.channel_id),
            effective_settings.list_values(status.channel_id),
            readers.get(status.prompt_id or 0, ReaderSummary()),
        )
        for status in statuses
    ]
    return render(
        request, "prompts/agents/channels.html", {"agent": row, "channel_statuses": statuses, "cards": cards}
    )


def list_channel_personas(
    workspace: Workspace, effective_settings: EffectiveSettings, channel: int
) -> list[ChannelPersona]:
    """List identity, soul and user profile on a channel with the levels they come from."""
    rows, levels = effective_settings.get_persona(channel)
    personas = []
    for name in PERSONA_FIELDS:
        record, file = rows[name], effective_settings.find_file(name) if levels[name] == "file" else None
        title = str(record) if record else file.file.path if file else str(EMPTY_PERSONA_LABELS[name])
        url = (
            reverse(f"{PERSONA_FAMILIES[name]}:detail", args=[workspace.slug, getattr(record, "slug", "")])
            if record
            else ""
        )
        personas.append(ChannelPersona(str(PERSONA_LABELS[name]), title, levels[name], url))
    return personas


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-channels")
