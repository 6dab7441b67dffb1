"""The state of the Studio that is kept in the URL: agent, channel, layout and open part."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse


@dataclass(frozen=True)
class PartRef:
    """A reference to a record by its page family and URL key; an empty key means a new record."""

    family: str
    key: str = ""

    @classmethod
    def parse(cls, value: str) -> "PartRef":
        family, _, key = value.partition(":")
        return cls(family[:40], key[:80])

    def __str__(self) -> str:
        return f"{self.family}:{self.key}"


@dataclass(frozen=True)
class StudioLocation:
    """One Studio URL; `layout` is empty when the agent's own layout is shown."""

    workspace: str
    agent: str
    part: PartRef
    channel: str = ""
    layout: str = ""

    def get_url(self, page: str = "show", **extra_params: Any) -> str:
        path = reverse(f"studio:{page}", args=[self.workspace, self.agent])
        return f"{path}?{self.build_query(self.part, **extra_params)}"

    def get_part_url(self, part: PartRef) -> str:
        """Return the URL that opens another part. A prompt has hundreds, so the path is reversed once."""
        return f"{self.show_path}?{self.build_query(part)}"

    @cached_property
    def show_path(self) -> str:
        return reverse("studio:show", args=[self.workspace, self.agent])

    def build_query(self, part: PartRef, **extra_params: Any) -> str:
        params = {"part": str(part), "channel": self.channel, "layout": self.layout} | extra_params
        return urlencode({name: value for name, value in params.items() if value != ""})

    def with_changes(self, **changes: Any) -> "StudioLocation":
        return replace(self, **changes)
