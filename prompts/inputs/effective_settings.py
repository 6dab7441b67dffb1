"""What holds for an agent's prompts, value by value, with the level that each was decided on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from personas.models import Agent, AgentChannel, Record, Workspace
from prompts.inputs.inheritance import InheritedSettings, SettingSources
from prompts.inputs.persona import PERSONA_FILES, EffectivePersona
from prompts.models import PromptSettings
from prompts.settings.models import ENTRY_CHOICES, MODE_CHOICES
from skills.agent_context.effective import EffectiveContext, EffectiveFile

PERSONA_FIELDS = ("identity", "soul", "user_profile")
SETTING_LABELS = {
    "native_tools": gettext_lazy("Tools as definitions"),
    "entry": gettext_lazy("Entry point"),
    "mode": gettext_lazy("Mode"),
    "mission": gettext_lazy("Mission"),
    "total_characters": gettext_lazy("Most characters"),
    "token_budget": gettext_lazy("Token budget"),
}


@dataclass(frozen=True)
class EffectiveValue:
    """One value in words, and where it was decided: channel, agent, file, workspace or built in."""

    name: str
    label: str
    words: str
    level: str
    # Whose level it is, where that is a channel.
    channel: str = ""
    # Channels on which something else holds.
    others: Sequence[str] = ()


@dataclass
class EffectiveSettings:
    """The levels of one agent, loaded once for all its channels."""

    agent: Agent
    rows: Sequence[PromptSettings]
    files: Sequence[EffectiveFile] = field(default_factory=list)

    @classmethod
    def of(cls, agent: Agent, files: Sequence[EffectiveFile] = ()) -> "EffectiveSettings":
        """One query."""
        links = AgentChannel.objects.in_workspace(agent.workspace_id).filter(agent=agent)
        rows = PromptSettings.objects.in_workspace(agent.workspace_id).filter(archived_at=None)
        wanted = Q(agent=None, channel=None) | Q(agent=agent) | Q(channel__in=links.values("channel"))
        found = rows.filter(wanted).select_related("identity", "soul", "user_profile", "channel")
        return cls(agent, list(found), files)

    def settings(self, channel: int | None = None) -> InheritedSettings:
        """Without a channel: what holds wherever no channel says otherwise."""
        by_agent = next((row for row in self.rows if row.agent_id is not None), None)
        by_channel = next((row for row in self.rows if channel and row.channel_id == channel), None)
        defaults = next((row for row in self.rows if row.agent_id is None and row.channel_id is None), None)
        return InheritedSettings(defaults, by_agent, by_channel)

    def values(self, channel: int | None = None) -> list[EffectiveValue]:
        settings = self.settings(channel)
        return [self.value(name, settings, channel) for name in SETTING_LABELS]

    def value(self, name: str, settings: InheritedSettings, channel: int | None = None) -> EffectiveValue:
        said, row = settings.find(name)
        of_channel = row.channel.slug if row and row.channel else ""
        others = self.saying(name) if channel is None else []
        return EffectiveValue(
            name,
            str(SETTING_LABELS[name]),
            SETTING_FORMATTERS[name](said),
            settings.levels[name],
            of_channel,
            others,
        )

    def saying(self, name: str) -> list[str]:
        """The channels that say something of their own about a value."""
        rows = [row for row in self.rows if row.channel and getattr(row, name) not in (None, "")]
        return [row.channel.name for row in rows if row.channel]

    def token_budget(self, channel: int) -> int | None:
        found: int | None = self.settings(channel).value("token_budget", default=None)
        return found

    # --- who it is ----------------------------------------------------------------------------------

    def persona(self, channel: int | None = None) -> tuple[dict[str, Record | None], SettingSources]:
        """Identity, soul and profile as they hold there, and the level of each."""
        given = EffectiveContext(None, tuple(self.files))
        who = EffectivePersona(self.agent, self.settings(channel), given, lambda record: record)
        return {name: who.pick(name) for name in PERSONA_FIELDS}, who.levels

    def file_of(self, name: str) -> EffectiveFile | None:
        """The found file that says who the agent is in this respect."""
        return next((one for one in self.files if one.file.path.endswith(PERSONA_FILES[name])), None)


def format_optional_number(said: int | None, nothing: str) -> str:
    return nothing if said is None else f"{said:,}"


def build_choice_formatter(
    choices: Sequence[tuple[str, object]], default: str
) -> Callable[[str | None], str]:
    words: Mapping[str, object] = dict(choices)
    return lambda said: str(words[said or default])


SETTING_FORMATTERS: dict[str, Callable[[Any], str]] = {
    "native_tools": lambda said: _("No, in the text") if said is False else _("Yes"),
    "entry": build_choice_formatter(ENTRY_CHOICES, "full"),
    "mode": build_choice_formatter(MODE_CHOICES, "agent"),
    "mission": lambda said: said or _("None"),
    "total_characters": lambda said: format_optional_number(said, _("No limit")),
    "token_budget": lambda said: format_optional_number(said, _("None")),
}


def describe_ledger_retention(workspace: Workspace) -> str:
    """How long it is remembered what was handed out."""
    months = workspace.ledger_months
    return ngettext("%(count)s month", "%(count)s months", months) % {"count": months}
