"""Identity, soul and user profile of an agent as cards: what each says, and where it comes from."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import cast

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from personas.models import Agent, Identity, Record, Soul, UserProfile, Workspace
from personas.records.models import Named
from prompts.assembly.layouts import dramatis, opal, pi
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.texts.moltis import TOOL_RULES
from prompts.assembly.tool_rules import ToolGuidelines, ToolRule
from prompts.inputs.effective_settings import PERSONA_FIELDS, EffectiveSettings
from prompts.inputs.inheritance import SettingSources

PERSONA_LABELS = {"identity": _("Identity"), "soul": _("Soul"), "user_profile": _("Speaks to")}
EMPTY_PERSONA_LABELS = {
    "identity": _("None"),
    "soul": _("The built-in default soul"),
    "user_profile": _("Nobody in particular"),
}
PERSONA_FAMILIES = {"identity": "identities", "soul": "souls", "user_profile": "user-profiles"}
MAX_EXCERPT_LENGTH = 420
PERSONA_ICONS = {"identity": "identity", "soul": "soul", "user_profile": "profile"}


@dataclass(frozen=True)
class PersonaCard:
    """One card."""

    name: str
    level: str
    title: str
    text: str = ""
    facts: Sequence[str] = ()
    url: str = ""
    # How many live agents have it, where the agent chose it itself.
    users: int = 0
    # Channels whose settings put another in its place.
    others: Sequence[str] = ()

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
    def is_shared(self) -> bool:
        return self.users > 1


def list_persona_cards(workspace: Workspace, deciding: EffectiveSettings) -> list[PersonaCard]:
    rows, levels = deciding.get_persona()
    return [build_persona_card(workspace, deciding, name, rows[name], levels) for name in PERSONA_FIELDS]


def build_persona_card(
    workspace: Workspace, deciding: EffectiveSettings, name: str, row: Record | None, levels: SettingSources
) -> PersonaCard:
    level, others = levels[name], deciding.list_overriding_channels(name)
    file = deciding.find_file(name) if level == "file" else None
    if row is not None:
        url = reverse(f"{PERSONA_FAMILIES[name]}:detail", args=[workspace.slug, cast("Named", row).slug])
        text, facts = get_persona_text(row)
        shared = count_sharing_agents(deciding.agent, name) if level == "agent" else 0
        return PersonaCard(name, level, str(row), build_excerpt(text), facts, url, shared, others)
    if file is not None:
        url = reverse("files:detail", args=[workspace.slug, file.file.pk])
        return PersonaCard(name, level, file.file.path, url=url, others=others)
    text = build_excerpt(DEFAULT_SOUL) if name == "soul" else ""
    return PersonaCard(name, level, str(EMPTY_PERSONA_LABELS[name]), text, others=others)


def build_excerpt(text: str) -> str:
    """The first words in a row, without headings and marks of Markdown: they take room and tell little."""
    lines = [line.strip().removeprefix("- ") for line in text[:2_000].splitlines()]
    said = " ".join([line for line in lines if line and not line.startswith("#")]).replace("**", "")
    return said if len(said) <= MAX_EXCERPT_LENGTH else f"{said[:MAX_EXCERPT_LENGTH]}…"


def get_persona_text(row: Record) -> tuple[str, list[str]]:
    """Its own words, and the short facts beside them."""
    if isinstance(row, Identity):
        return row.text, [fact for fact in (row.name, row.creature, row.vibe) if fact]
    if isinstance(row, UserProfile):
        return row.notes, [fact for fact in (row.name, row.timezone, row.location) if fact]
    return cast("Soul", row).text or DEFAULT_SOUL, []


def count_sharing_agents(agent: Agent, name: str) -> int:
    """Counted with the agent, where its page asked for it."""
    return int(getattr(agent, f"{name}_users", 0))


# Layouts that are not here say nothing about the use of single tools.
GUIDELINES_BY_LAYOUT: dict[str, ToolGuidelines] = {
    "dramatis": dramatis.DRAMATIS_GUIDELINES,
    "opal": opal.OPAL_GUIDELINES,
    "pi": pi.PI_GUIDELINES,
    "moltis": ToolGuidelines(TOOL_RULES),
}


@dataclass(frozen=True)
class GuidanceLine:
    """One line, and the tools that it stands there for; none where it always stands."""

    words: str
    tools: Sequence[str]
    # Whether the tool's own record says it, and not the layout.
    is_own: bool = False


def list_guidance_lines(layout: str, own: Mapping[str, Sequence[str]]) -> list[GuidanceLine]:
    """In the order of the prompt; `own` are the active tools by name with their own guidelines."""
    table = GUIDELINES_BY_LAYOUT.get(layout)
    if table is None:
        return []
    rules = {line: rule for rule in (*table.rules, *table.general_rules) for line in rule.lines}
    told = table.select_lines(own, own)
    return [
        GuidanceLine(line, [name], is_own=True)
        if name
        else GuidanceLine(line, list_rule_tools(rules[line], own.keys()))
        for line, name in told.items()
    ]


def list_rule_tools(rule: ToolRule, names: AbstractSet[str]) -> list[str]:
    """The tools of an agent that a rule looks at."""
    return [name for name in names if name in rule.needs.every or name in rule.needs.some]
