"""A prompt assembled from a draft, for pages and programs alike: nothing is stored, and nothing is served."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from personas.errors import DomainError
from personas.models import Agent, Workspace
from prompts.builds.compiler import Compiled, compiled
from prompts.inputs import Draft, Gathered, Loaded, Shelf


class NotSpoken(DomainError):
    """A channel that the agent does not speak on."""

    code = "not_spoken"


@dataclass(frozen=True)
class Preview:
    """One agent on one channel: all that goes in, with a draft and without it."""

    loaded: Loaded
    gathered: Gathered
    at: datetime
    draft: Draft | None = None

    def made(self) -> Compiled:
        """Only this one is compiled; else NotBuildable."""
        return compiled(self.gathered)

    def in_layout(self, name: str) -> "Preview":
        return replace(self, gathered=replace(self.gathered, layout=name))

    def as_saved(self) -> "Preview | None":
        """The same without the draft; nothing where the agent speaks there only in the draft."""
        shelf = Shelf(self.loaded, self.at)
        saved = spoken(shelf, self.gathered.channel.slug)
        if saved is None:
            return None
        return replace(self, gathered=replace(saved, layout=self.gathered.layout), draft=None)


def preview(
    workspace: Workspace,
    agent: Agent,
    channel: str,
    *,
    draft: Draft | None = None,
    layout: str = "",
    loaded: Loaded | None = None,
) -> Preview:
    """What the agent would be told on the channel if the draft were saved."""
    loaded, at = loaded or Loaded(workspace, [agent]), timezone.now()
    gathered = spoken(Shelf(loaded, at, draft), channel)
    if gathered is None:
        raise NotSpoken(str(_("The agent does not speak on this channel.")))
    return Preview(loaded, replace(gathered, layout=layout or gathered.layout), at, draft)


def spoken(shelf: Shelf, slug: str) -> Gathered | None:
    for agent in shelf.agents:
        for channel in shelf.channels[agent.pk]:
            if channel.slug == slug:
                return shelf.gathered(agent, channel)
    return None
