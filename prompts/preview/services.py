"""A prompt assembled from a draft, for pages and programs alike: nothing is stored, and nothing is served."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from personas.errors import DomainError
from personas.models import Agent, Workspace
from prompts.builds.compiler import BuildResult, compile_prompt
from prompts.inputs import CollectedInputs, DraftRecord, InputCollector, LoadedRows


class ChannelNotUsed(DomainError):
    """A channel that the agent does not speak on."""

    code = "not_spoken"


@dataclass(frozen=True)
class PromptPreview:
    """One agent on one channel: all that goes in, with a draft and without it."""

    loaded: LoadedRows
    gathered: CollectedInputs
    at: datetime
    draft: DraftRecord | None = None

    def made(self) -> BuildResult:
        """Only this one is compiled; else NotBuildable."""
        return compile_prompt(self.gathered)

    def in_layout(self, name: str) -> "PromptPreview":
        return replace(self, gathered=replace(self.gathered, layout=name))

    def as_saved(self) -> "PromptPreview | None":
        """The same without the draft; nothing where the agent speaks there only in the draft."""
        shelf = InputCollector(self.loaded, self.at)
        saved = collect_channel_inputs(shelf, self.gathered.channel.slug)
        if saved is None:
            return None
        return replace(self, gathered=replace(saved, layout=self.gathered.layout), draft=None)


def build_preview(
    workspace: Workspace,
    agent: Agent,
    channel: str,
    *,
    draft: DraftRecord | None = None,
    layout: str = "",
    loaded: LoadedRows | None = None,
) -> PromptPreview:
    """What the agent would be told on the channel if the draft were saved."""
    loaded, at = loaded or LoadedRows(workspace, [agent]), timezone.now()
    gathered = collect_channel_inputs(InputCollector(loaded, at, draft), channel)
    if gathered is None:
        raise ChannelNotUsed(str(_("The agent does not speak on this channel.")))
    return PromptPreview(loaded, replace(gathered, layout=layout or gathered.layout), at, draft)


def collect_channel_inputs(shelf: InputCollector, slug: str) -> CollectedInputs | None:
    for agent in shelf.agents:
        for channel in shelf.channels[agent.pk]:
            if channel.slug == slug:
                return shelf.collect_prompt(agent, channel)
    return None
