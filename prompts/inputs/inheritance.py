"""Inheritance of prompt settings: a channel overrides the agent, the agent overrides the workspace."""

from dataclasses import dataclass, field
from typing import Any

from prompts.assembly.inputs import Text
from prompts.assembly.segments import Origin
from prompts.models import PromptSettings

# Maps the name of a setting to the level that its value comes from, for example "channel".
SettingSources = dict[str, str]


@dataclass
class InheritedSettings:
    """The settings of one prompt on three levels.

    Each lookup of a setting adds the level of its value to `levels`.
    """

    of_workspace: PromptSettings | None
    of_agent: PromptSettings | None
    of_channel: PromptSettings | None
    levels: SettingSources = field(default_factory=dict)

    def find_value(self, name: str) -> tuple[Any, PromptSettings | None]:
        """Return the value of the most specific level that sets it, and the row of that level."""
        rows = {"channel": self.of_channel, "agent": self.of_agent, "workspace": self.of_workspace}
        for level, row in rows.items():
            value = getattr(row, name) if row else None
            if value is not None and value != "":
                self.levels[name] = level
                return value, row
        self.levels[name] = "built in"
        return None, None

    def get_value(self, name: str, *, default: Any) -> Any:
        value, _ = self.find_value(name)
        return default if value is None else value

    def get_text(self, name: str) -> Text | None:
        value, row = self.find_value(name)
        return Text(value, Origin(row.kind, str(row.pk), row.revision)) if row else None
