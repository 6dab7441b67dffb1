"""Preview a prompt with an unsaved draft, for pages and the API; nothing is stored or served."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from personas.errors import DomainError
from personas.models import Agent, Workspace
from prompts.publishing.builds.compiler import BuildResult, compile_prompt
from prompts.publishing.inputs import CollectedInputs, DraftRecord, InputCollector, LoadedRows


class ChannelNotUsed(DomainError):
    """The agent is not assigned to the channel."""

    code = "channel_not_enabled"


@dataclass(frozen=True)
class PromptPreview:
    """The collected inputs of one agent on one channel, with or without a draft."""

    loaded: LoadedRows
    collected: CollectedInputs
    at: datetime
    draft: DraftRecord | None = None

    def compile(self) -> BuildResult:
        """Compile this prompt; raise NotBuildable on failure."""
        return compile_prompt(self.collected)

    def with_layout(self, name: str) -> "PromptPreview":
        return replace(self, collected=replace(self.collected, layout=name))

    def without_draft(self) -> "PromptPreview | None":
        """Return the same preview without the draft; None if only the draft adds the channel."""
        collector = InputCollector(self.loaded, self.at)
        saved = collect_channel_inputs(collector, self.collected.channel.slug)
        if saved is None:
            return None
        return replace(self, collected=replace(saved, layout=self.collected.layout), draft=None)


def build_preview(
    workspace: Workspace,
    agent: Agent,
    channel: str,
    *,
    draft: DraftRecord | None = None,
    layout: str = "",
    loaded: LoadedRows | None = None,
) -> PromptPreview:
    """Collect the inputs of the agent on the channel as if the draft were saved."""
    loaded, at = loaded or LoadedRows(workspace, [agent]), timezone.now()
    collected = collect_channel_inputs(InputCollector(loaded, at, draft), channel)
    if collected is None:
        raise ChannelNotUsed(str(_("The agent is not on this channel.")))
    return PromptPreview(loaded, replace(collected, layout=layout or collected.layout), at, draft)


def collect_channel_inputs(collector: InputCollector, slug: str) -> CollectedInputs | None:
    for agent in collector.agents:
        for channel in collector.channels[agent.pk]:
            if channel.slug == slug:
                return collector.collect_prompt(agent, channel)
    return None
