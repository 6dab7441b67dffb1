"""Cards of an agent's identity, soul and user profile, and the tool guidance lines of its layout."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import cast

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.text.markdown import build_excerpt
from personas.models import Agent, Identity, Record, Soul, UserProfile, Workspace
from personas.records.models import Named
from prompts.assembly.layouts import dramatis, opal, pi
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.texts.moltis import TOOL_RULES
from prompts.assembly.tool_rules import ToolGuidelines, ToolRule
from prompts.publishing.inputs.effective_settings import PERSONA_FIELDS, EffectiveSettings
from prompts.publishing.inputs.inheritance import SettingSources

PERSONA_LABELS = {"identity": _("Identity"), "soul": _("Soul"), "user_profile": _("User profile")}
EMPTY_PERSONA_LABELS = {
    "identity": _("None"),
    "soul": _("Built-in default soul"),
    "user_profile": _("No user profile"),
}
PERSONA_FAMILIES = {"identity": "identities", "soul": "souls", "user_profile": "user-profiles"}
MAX_EXCERPT_LENGTH = 420
PERSONA_ICONS = {"identity": "identity", "soul": "soul", "user_profile": "profile"}


@dataclass(frozen=True)
class PersonaCard:
    """Identity, soul or user profile of an agent, with the level (agent, file, workspace, …) it is set on."""

    name: str
    level: str
    title: str
    text: str = ""
    facts: Sequence[str] = ()
    url: str = ""
    # Number of active agents that use the record; 0 unless the level is "agent".
    agent_count: int = 0
    # Channels whose own settings replace the record.
    overriding_channels: Sequence[str] = ()

    @property
    def label(self) -> str:
        return str(PERSONA_LABELS[self.name])

    @property
    def icon(self) -> str:
        return PERSONA_ICONS[self.name]

    @property
    def kind(self) -> str:
        return self.name

    @property
    def family(self) -> str:
        """The segment of the URLs of its records."""
        return PERSONA_FAMILIES[self.name]

    @property
    def is_shared(self) -> bool:
        return self.agent_count > 1


def list_persona_cards(workspace: Workspace, effective_settings: EffectiveSettings) -> list[PersonaCard]:
    rows, levels = effective_settings.get_persona()
    return [
        build_persona_card(workspace, effective_settings, name, rows[name], levels) for name in PERSONA_FIELDS
    ]


def build_persona_card(
    workspace: Workspace,
    effective_settings: EffectiveSettings,
    name: str,
    row: Record | None,
    levels: SettingSources,
) -> PersonaCard:
    level, overriding_channels = levels[name], effective_settings.list_overriding_channels(name)
    file = effective_settings.find_file(name) if level == "file" else None
    if row is not None:
        url = reverse(f"{PERSONA_FAMILIES[name]}:detail", args=[workspace.slug, cast("Named", row).slug])
        text, facts = get_persona_text(row)
        agent_count = count_sharing_agents(effective_settings.agent, name) if level == "agent" else 0
        return PersonaCard(
            name,
            level,
            str(row),
            build_excerpt(text, MAX_EXCERPT_LENGTH),
            facts,
            url,
            agent_count,
            overriding_channels,
        )
    if file is not None:
        url = reverse("files:detail", args=[workspace.slug, file.file.pk])
        return PersonaCard(name, level, file.file.path, url=url, overriding_channels=overriding_channels)
    text = build_excerpt(DEFAULT_SOUL, MAX_EXCERPT_LENGTH) if name == "soul" else ""
    return PersonaCard(
        name, level, str(EMPTY_PERSONA_LABELS[name]), text, overriding_channels=overriding_channels
    )


def get_persona_text(row: Record) -> tuple[str, list[str]]:
    """Return the long text of a record, and short facts such as name and time zone."""
    if isinstance(row, Identity):
        return row.text, [fact for fact in (row.display_name, row.creature, row.vibe) if fact]
    if isinstance(row, UserProfile):
        return row.notes, [fact for fact in (row.display_name, row.timezone, row.location) if fact]
    return cast("Soul", row).text or DEFAULT_SOUL, []


def count_sharing_agents(agent: Agent, name: str) -> int:
    """Return the number of agents that use the same identity, soul or user profile.

    The query of the agent page adds it as an annotation; on other pages it is 0.
    """
    return int(getattr(agent, f"{name}_users", 0))


# Only these layouts have guidance for individual tools.
GUIDELINES_BY_LAYOUT: dict[str, ToolGuidelines] = {
    "dramatis": dramatis.DRAMATIS_GUIDELINES,
    "opal": opal.OPAL_GUIDELINES,
    "pi": pi.PI_GUIDELINES,
    "moltis": ToolGuidelines(TOOL_RULES),
}


@dataclass(frozen=True)
class GuidanceLine:
    """A line of tool guidance and the tools that cause it; no tools if it is always included."""

    text: str
    tools: Sequence[str]
    # Whether the line comes from the record of the tool itself rather than from the layout.
    is_own: bool = False


def list_guidance_lines(layout: str, own_guidelines: Mapping[str, Sequence[str]]) -> list[GuidanceLine]:
    """List guidance in prompt order; `own_guidelines` maps the active tools to their own guidelines."""
    table = GUIDELINES_BY_LAYOUT.get(layout)
    if table is None:
        return []
    rules = {line: rule for rule in (*table.rules, *table.general_rules) for line in rule.lines}
    selected = table.select_lines(own_guidelines, own_guidelines)
    return [
        GuidanceLine(line, [name], is_own=True)
        if name
        else GuidanceLine(line, list_rule_tools(rules[line], own_guidelines.keys()))
        for line, name in selected.items()
    ]


def list_rule_tools(rule: ToolRule, names: AbstractSet[str]) -> list[str]:
    """List those of the named tools that the rule depends on."""
    return [name for name in names if name in rule.needs.every or name in rule.needs.some]
