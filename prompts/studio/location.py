"""Where somebody is in the Studio: agent, channel, layout and open part, all of it in the address."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse


@dataclass(frozen=True)
class PartRef:
    """A record by its family of pages and what stands for it in an address; without a key, a new one."""

    family: str
    key: str = ""

    @classmethod
    def read(cls, said: str) -> "PartRef":
        family, _, key = said.partition(":")
        return cls(family[:40], key[:80])

    def __str__(self) -> str:
        return f"{self.family}:{self.key}"


@dataclass(frozen=True)
class StudioLocation:
    """One state of the Studio; a layout is named only where it is not the agent's own."""

    workspace: str
    agent: str
    part: PartRef
    channel: str = ""
    layout: str = ""

    def url(self, page: str = "show", **more: Any) -> str:
        said = {"part": str(self.part), "channel": self.channel, "layout": self.layout} | more
        query = urlencode({name: value for name, value in said.items() if value != ""})
        return f"{reverse(f'studio:{page}', args=[self.workspace, self.agent])}?{query}"

    def at(self, **changes: Any) -> "StudioLocation":
        return replace(self, **changes)
