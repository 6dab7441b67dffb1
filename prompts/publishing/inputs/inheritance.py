"""Inheritance of prompt settings: the first value of prompt, channel, agent and workspace applies."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prompts.assembly.inputs import Data, Limits, Text
from prompts.assembly.segments import Origin
from prompts.models import PromptSettings

# Maps the name of a setting to the level that its value comes from, for example "channel".
SettingSources = dict[str, str]

# The settings that are limits, and the fields of Limits that they set.
LIMIT_NAMES = {
    "total_characters": "total",
    "section_limits": "parts",
    "per_file": "per_file",
    "all_files": "all_files",
    "list_sample": "list_sample",
    "string_truncate": "string_truncate",
    "omit_reference": "omit_reference",
}


@dataclass
class InheritedSettings:
    """The settings of one prompt on four levels.

    Each lookup of a setting adds the level of its value to `levels`.
    """

    of_workspace: PromptSettings | None
    of_agent: PromptSettings | None
    of_channel: PromptSettings | None
    # The settings of this agent on this channel alone.
    of_prompt: PromptSettings | None = None
    levels: SettingSources = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[tuple[str, PromptSettings]]:
        """The rows of the levels that have one, the most specific first."""
        rows = {
            "prompt": self.of_prompt,
            "channel": self.of_channel,
            "agent": self.of_agent,
            "workspace": self.of_workspace,
        }
        return [(level, row) for level, row in rows.items() if row]

    def find_value(self, name: str) -> tuple[Any, PromptSettings | None]:
        """Return the value of the most specific level that sets it, and the row of that level."""
        for level, row in self.rows:
            value = getattr(row, name)
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
        return Text(value, build_settings_origin(row)) if row else None

    def build_data(self) -> Data | None:
        """Build the data. Its origin is the level of the sample data or, without these, of the signature."""
        values, values_row = self.find_value("sample_data")
        signature, signature_row = self.find_value("signature")
        hidden, _ = self.find_value("hidden")
        row = values_row or signature_row
        if row is None:
            return None
        sample = json.loads(values) if values else {}
        return Data(sample, signature or "", build_settings_origin(row), tuple(hidden or ()))

    def build_limits(self) -> Limits:
        values = {name: self.get_value(setting, default=None) for setting, name in LIMIT_NAMES.items()}
        return Limits(**{name: value for name, value in values.items() if value is not None})


def build_settings_origin(row: PromptSettings) -> Origin:
    return Origin(row.kind, str(row.pk or "new"), row.revision)
