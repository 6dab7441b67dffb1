"""Resolve the identity, soul and user profile of an agent on a channel."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from personas.models import Agent, Identity, Record, Soul, UserProfile
from personas.persona_files.format import parse_identity, parse_soul, parse_user
from prompts.assembly.inputs import IdentityInput, Text, UserProfileInput
from prompts.models import PromptSettings
from prompts.publishing.inputs.convert import (
    build_file_origin,
    build_record_origin,
    build_text_input,
    get_file_text,
)
from prompts.publishing.inputs.inheritance import InheritedSettings, SettingSources
from skills.agent_context.effective import EffectiveContext, EffectiveFile

PERSONA_FILES = {"identity": "IDENTITY.md", "soul": "SOUL.md", "user_profile": "USER.md"}


@dataclass
class EffectivePersona:
    """The effective identity, soul and user profile of an agent on a channel.

    Each comes from the settings of the prompt, else of the channel, else from the agent, else from a
    discovered file, else from the workspace.
    """

    agent: Agent
    settings: InheritedSettings
    context: EffectiveContext
    apply_draft: Callable[[Record], Record]
    levels: SettingSources = field(default_factory=dict)

    def build_identity(self) -> IdentityInput | None:
        row, file = self.pick_record("identity"), self.find_file("IDENTITY.md")
        if row is not None:
            row = cast("Identity", row)
            return IdentityInput(
                row.display_name, row.emoji, row.creature, row.vibe, row.text, build_record_origin(row)
            )
        if file is None:
            return None
        parsed = parse_identity(get_file_text(file))
        return IdentityInput(
            parsed.name, parsed.emoji, parsed.creature, parsed.vibe, parsed.text, build_file_origin(file)
        )

    def build_soul(self) -> Text | None:
        row, file = self.pick_record("soul"), self.find_file("SOUL.md")
        if row is not None:
            return build_text_input(cast("Soul", row).text, row)
        return Text(parse_soul(get_file_text(file)), build_file_origin(file)) if file else None

    def build_user_profile(self) -> UserProfileInput | None:
        row, file = self.pick_record("user_profile"), self.find_file("USER.md")
        if row is not None:
            row = cast("UserProfile", row)
            return UserProfileInput(
                row.display_name, row.timezone, row.location, row.notes, build_record_origin(row)
            )
        if file is None:
            return None
        parsed = parse_user(get_file_text(file))
        return UserProfileInput(
            parsed.name, parsed.timezone, parsed.location, parsed.notes, build_file_origin(file)
        )

    def pick_record(self, name: str) -> Record | None:
        """Return the record of the most specific level that has one.

        Return None if there is no record, or if a discovered file takes precedence over the record of the
        workspace.
        """
        choices: list[tuple[str, PromptSettings | Agent | None]] = [
            ("prompt", self.settings.of_prompt),
            ("channel", self.settings.of_channel),
            ("agent", self.agent),
        ]
        if not self.find_file(PERSONA_FILES[name]):
            choices.append(("workspace", self.settings.of_workspace))
        for level, holder in choices:
            row = getattr(holder, name, None) if holder else None
            if row is not None:
                self.levels[name] = level
                return self.apply_draft(cast("Record", row))
        self.levels[name] = "file" if self.find_file(PERSONA_FILES[name]) else "built in"
        return None

    def find_file(self, name: str) -> EffectiveFile | None:
        files = self.context.list_files("persona")
        return next((file for file in files if file.file.path.endswith(name)), None) if files else None
