"""Inheritance, spelled out: workspace defaults, then the agent's settings, then the channel's."""

from dataclasses import dataclass, field
from typing import Any

from prompts.assembly.inputs import Text
from prompts.assembly.segments import Origin
from prompts.models import PromptSettings

# The name of a value and the level it came from.
SettingSources = dict[str, str]


@dataclass
class InheritedSettings:
    """The three levels of one prompt; what was asked for is remembered with its level."""

    of_workspace: PromptSettings | None
    of_agent: PromptSettings | None
    of_channel: PromptSettings | None
    levels: SettingSources = field(default_factory=dict)

    def find(self, name: str) -> tuple[Any, PromptSettings | None]:
        """The nearest level that says something wins."""
        rows = {"channel": self.of_channel, "agent": self.of_agent, "workspace": self.of_workspace}
        for level, row in rows.items():
            said = getattr(row, name) if row else None
            if said is not None and said != "":
                self.levels[name] = level
                return said, row
        self.levels[name] = "built in"
        return None, None

    def value(self, name: str, *, default: Any) -> Any:
        said, _ = self.find(name)
        return default if said is None else said

    def text(self, name: str) -> Text | None:
        said, row = self.find(name)
        return Text(said, Origin(row.kind, str(row.pk), row.revision)) if row else None
