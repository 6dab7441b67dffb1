"""The effective settings of an agent's prompts for display, each with the level it comes from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from personas.models import Agent, AgentChannel, Record, Workspace
from prompts.assembly.inputs import Limits
from prompts.models import PromptSettings
from prompts.publishing.inputs.inheritance import InheritedSettings, SettingSources
from prompts.publishing.inputs.persona import PERSONA_FILES, EffectivePersona
from prompts.publishing.settings.models import ENTRY_CHOICES, MODE_CHOICES
from skills.agent_context.effective import EffectiveContext, EffectiveFile

BUILT_IN_LIMITS = Limits()
PERSONA_FIELDS = ("identity", "soul", "user_profile")
SETTING_LABELS = {
    "native_tools": gettext_lazy("Tools as definitions"),
    "entry": gettext_lazy("Entry point"),
    "mode": gettext_lazy("Mode"),
    "mission": gettext_lazy("Mission"),
    "signature": gettext_lazy("Data signature"),
    "sample_data": gettext_lazy("Sample data"),
    "hidden": gettext_lazy("Hidden fields"),
    "total_characters": gettext_lazy("Maximum characters"),
    "per_file": gettext_lazy("Maximum characters per file"),
    "all_files": gettext_lazy("Maximum characters in all files"),
    "section_limits": gettext_lazy("Maximum characters per section"),
    "list_sample": gettext_lazy("Items per list in samples"),
    "string_truncate": gettext_lazy("Characters per text value in samples"),
    "omit_reference": gettext_lazy("Leave out the language reference"),
    "token_budget": gettext_lazy("Token budget"),
}


@dataclass(frozen=True)
class EffectiveValue:
    """A formatted setting and its level: prompt, channel, agent, file, workspace or built in."""

    name: str
    label: str
    text: str
    level: str
    # The slug of the channel that sets the value, if the level is a channel or a prompt.
    channel: str = ""
    # The names of the channels that override the value; empty if the value is for a single channel.
    others: Sequence[str] = ()


@dataclass
class EffectiveSettings:
    """The settings of one agent on all levels, loaded once for all its channels."""

    agent: Agent
    rows: Sequence[PromptSettings]
    files: Sequence[EffectiveFile] = field(default_factory=list)

    @classmethod
    def load(cls, agent: Agent, files: Sequence[EffectiveFile] = ()) -> "EffectiveSettings":
        """Load the settings of the workspace, the agent, its channels and its prompts with one query."""
        links = AgentChannel.objects.in_workspace(agent.workspace_id).filter(agent=agent)
        rows = PromptSettings.objects.in_workspace(agent.workspace_id).filter(archived_at=None)
        of_channels = Q(agent=None, channel__in=links.values("channel"))
        condition = Q(agent=None, channel=None) | Q(agent=agent) | of_channels
        settings = rows.filter(condition).select_related("identity", "soul", "user_profile", "channel")
        return cls(agent, list(settings), files)

    def get_settings(self, channel: int | None = None) -> InheritedSettings:
        """Return the settings of the agent on the channel with this id.

        Without a channel, return the settings that apply unless a channel overrides them.
        """
        rows = {(row.agent_id, row.channel_id): row for row in self.rows}
        agent = self.agent.pk
        of_channel = rows.get((None, channel)) if channel else None
        of_prompt = rows.get((agent, channel)) if channel else None
        return InheritedSettings(rows.get((None, None)), rows.get((agent, None)), of_channel, of_prompt)

    def list_values(self, channel: int | None = None) -> list[EffectiveValue]:
        settings = self.get_settings(channel)
        return [self.get_value(name, settings, channel) for name in SETTING_LABELS]

    def get_value(self, name: str, settings: InheritedSettings, channel: int | None = None) -> EffectiveValue:
        value, row = settings.find_value(name)
        of_channel = row.channel.slug if row and row.channel else ""
        others = self.list_overriding_channels(name) if channel is None else []
        return EffectiveValue(
            name,
            str(SETTING_LABELS[name]),
            SETTING_FORMATTERS[name](value),
            settings.levels[name],
            of_channel,
            others,
        )

    def list_overriding_channels(self, name: str) -> list[str]:
        """List the names of the channels on which a value is overridden."""
        rows = [row for row in self.rows if row.channel and getattr(row, name) not in (None, "")]
        return list(dict.fromkeys(row.channel.name for row in rows if row.channel))

    def get_token_budget(self, channel: int) -> int | None:
        budget: int | None = self.get_settings(channel).get_value("token_budget", default=None)
        return budget

    # --- persona ------------------------------------------------------------------------------------

    def get_persona(self, channel: int | None = None) -> tuple[dict[str, Record | None], SettingSources]:
        """Return the effective identity, soul and user profile, and the level that each comes from."""
        context = EffectiveContext(None, tuple(self.files))
        persona = EffectivePersona(self.agent, self.get_settings(channel), context, lambda record: record)
        return {name: persona.pick_record(name) for name in PERSONA_FIELDS}, persona.levels

    def find_file(self, name: str) -> EffectiveFile | None:
        """Return the discovered file for a persona field, for example SOUL.md for "soul"."""
        return next((file for file in self.files if file.file.path.endswith(PERSONA_FILES[name])), None)


def format_optional_number(value: int | None, empty_text: str) -> str:
    return empty_text if value is None else f"{value:,}"


def format_section_limits(limits: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {limit:,}" for name, limit in sorted(limits.items())) or _("None")


def build_choice_formatter(
    choices: Sequence[tuple[str, object]], default: str
) -> Callable[[str | None], str]:
    labels: Mapping[str, object] = dict(choices)
    return lambda value: str(labels[value or default])


SETTING_FORMATTERS: dict[str, Callable[[Any], str]] = {
    "native_tools": lambda value: _("No, listed in the prompt text") if value is False else _("Yes"),
    "entry": build_choice_formatter(ENTRY_CHOICES, "full"),
    "mode": build_choice_formatter(MODE_CHOICES, "agent"),
    "mission": lambda value: value or _("None"),
    "signature": lambda value: value or _("None"),
    "sample_data": lambda value: value or _("None"),
    "hidden": lambda value: ", ".join(value or ()) or _("Only names that start with “_”"),
    "per_file": lambda value: f"{value or BUILT_IN_LIMITS.per_file:,}",
    "all_files": lambda value: f"{value or BUILT_IN_LIMITS.all_files:,}",
    "section_limits": lambda value: format_section_limits(value or {}),
    "list_sample": lambda value: f"{value or BUILT_IN_LIMITS.list_sample:,}",
    "string_truncate": lambda value: f"{value or BUILT_IN_LIMITS.string_truncate:,}",
    "omit_reference": lambda value: _("Yes") if value else _("No"),
    "total_characters": lambda value: format_optional_number(value, _("No limit")),
    "token_budget": lambda value: format_optional_number(value, _("None")),
}


def describe_ledger_retention(workspace: Workspace) -> str:
    """Format how many months the ledger is retained."""
    months = workspace.ledger_months
    return ngettext("%(count)s month", "%(count)s months", months) % {"count": months}
