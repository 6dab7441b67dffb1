"""An agent's channels: what bots get on each, how large it is, and which settings made it so."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse

from personas.agents.selectors import agent_rows
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.agent_pages.cards import FAMILIES, LABELS, NOTHING
from prompts.agent_pages.selectors import Line, Readers, lines_of, readers_of
from prompts.inputs.effective_settings import PERSONA, Deciding, Value
from skills.agent_context.withheld import files_about


@dataclass(frozen=True)
class Who:
    """Identity, soul or profile on one channel."""

    label: str
    words: str
    level: str
    url: str = ""


@dataclass(frozen=True)
class ChannelCard:
    """One channel of an agent."""

    line: Line
    budget: int | None
    who: Sequence[Who]
    values: Sequence[Value]
    readers: Readers


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(agent_rows(request.workspace), slug=agent)
    lines = lines_of(row)
    deciding = Deciding.of(row, files_about(row).persona)
    readers = readers_of(row, [line.prompt_id for line in lines if line.prompt_id])
    cards = [
        ChannelCard(
            line,
            deciding.token_budget(line.channel_id),
            who_on(request.workspace, deciding, line.channel_id),
            deciding.values(line.channel_id),
            readers.get(line.prompt_id or 0, Readers()),
        )
        for line in lines
    ]
    return render(
        request, "prompts/agents/channels.html", {"agent": row, "agent_lines": lines, "cards": cards}
    )


def who_on(workspace: Workspace, deciding: Deciding, channel: int) -> list[Who]:
    """Who the agent is on a channel, and who decided that."""
    rows, levels = deciding.persona(channel)
    found = []
    for name in PERSONA:
        record, file = rows[name], deciding.file_of(name) if levels[name] == "file" else None
        words = str(record) if record else file.file.path if file else str(NOTHING[name])
        url = (
            reverse(f"{FAMILIES[name]}:detail", args=[workspace.slug, getattr(record, "slug", "")])
            if record
            else ""
        )
        found.append(Who(str(LABELS[name]), words, levels[name], url))
    return found


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-channels")
