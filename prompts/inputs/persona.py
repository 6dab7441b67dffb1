"""Who an agent is on a channel, level by level."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from personas import models as records
from personas.models import Agent, Record
from personas.persona_files.format import parse_identity, parse_soul, parse_user
from prompts.assembly import inputs as told
from prompts.inputs.convert import build_file_origin, build_record_origin, build_text_input, get_file_text
from prompts.inputs.inheritance import InheritedSettings, SettingSources
from prompts.models import PromptSettings
from skills.agent_context.effective import EffectiveContext, EffectiveFile

PERSONA_FILES = {"identity": "IDENTITY.md", "soul": "SOUL.md", "user_profile": "USER.md"}


@dataclass
class EffectivePersona:
    """The channel's word, else the agent's own, else a found file's, else the workspace's defaults."""

    agent: Agent
    settings: InheritedSettings
    given: EffectiveContext
    drafted: Callable[[Record], Record]
    levels: SettingSources = field(default_factory=dict)

    def identity(self) -> told.Identity | None:
        row, file = self.pick("identity"), self.file("IDENTITY.md")
        if row is not None:
            row = cast("records.Identity", row)
            return told.Identity(
                row.name, row.emoji, row.creature, row.vibe, row.text, build_record_origin(row)
            )
        if file is None:
            return None
        read = parse_identity(get_file_text(file))
        return told.Identity(
            read.name, read.emoji, read.creature, read.vibe, read.text, build_file_origin(file)
        )

    def soul(self) -> told.Text | None:
        row, file = self.pick("soul"), self.file("SOUL.md")
        if row is not None:
            return build_text_input(cast("records.Soul", row).text, row)
        return told.Text(parse_soul(get_file_text(file)), build_file_origin(file)) if file else None

    def user(self) -> told.UserProfile | None:
        row, file = self.pick("user_profile"), self.file("USER.md")
        if row is not None:
            row = cast("records.UserProfile", row)
            return told.UserProfile(row.name, row.timezone, row.location, row.notes, build_record_origin(row))
        if file is None:
            return None
        read = parse_user(get_file_text(file))
        return told.UserProfile(read.name, read.timezone, read.location, read.notes, build_file_origin(file))

    def pick(self, name: str) -> Record | None:
        """The nearest level that says something; a found file stands between the agent and the defaults."""
        choices: list[tuple[str, PromptSettings | Agent | None]] = [
            ("channel", self.settings.of_channel),
            ("agent", self.agent),
        ]
        if not self.file(PERSONA_FILES[name]):
            choices.append(("workspace", self.settings.of_workspace))
        for level, holder in choices:
            row = getattr(holder, name, None) if holder else None
            if row is not None:
                self.levels[name] = level
                return self.drafted(cast("Record", row))
        self.levels[name] = "file" if self.file(PERSONA_FILES[name]) else "built in"
        return None

    def file(self, name: str) -> EffectiveFile | None:
        return next((one for one in self.given.of_kind("persona") if one.file.path.endswith(name)), None)
