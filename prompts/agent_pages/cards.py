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
from prompts.assembly.tool_rules import Guidelines, Rule
from prompts.inputs.effective_settings import PERSONA, Deciding
from prompts.inputs.inheritance import Levels

LABELS = {"identity": _("Identity"), "soul": _("Soul"), "user_profile": _("Speaks to")}
NOTHING = {
    "identity": _("None"),
    "soul": _("The built-in default soul"),
    "user_profile": _("Nobody in particular"),
}
FAMILIES = {"identity": "identities", "soul": "souls", "user_profile": "user-profiles"}
LONGEST = 420
ICONS = {"identity": "identity", "soul": "soul", "user_profile": "profile"}


@dataclass(frozen=True)
class PersonaPart:
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
        return str(LABELS[self.name])

    @property
    def icon(self) -> str:
        return ICONS[self.name]

    @property
    def kind(self) -> str:
        return self.name

    @property
    def is_shared(self) -> bool:
        return self.users > 1


def persona_parts(workspace: Workspace, deciding: Deciding) -> list[PersonaPart]:
    rows, levels = deciding.persona()
    return [part(workspace, deciding, name, rows[name], levels) for name in PERSONA]


def part(
    workspace: Workspace, deciding: Deciding, name: str, row: Record | None, levels: Levels
) -> PersonaPart:
    level, others = levels[name], deciding.saying(name)
    file = deciding.file_of(name) if level == "file" else None
    if row is not None:
        url = reverse(f"{FAMILIES[name]}:detail", args=[workspace.slug, cast("Named", row).slug])
        text, facts = said_by(row)
        shared = users(deciding.agent, name) if level == "agent" else 0
        return PersonaPart(name, level, str(row), excerpt(text), facts, url, shared, others)
    if file is not None:
        url = reverse("files:detail", args=[workspace.slug, file.file.pk])
        return PersonaPart(name, level, file.file.path, url=url, others=others)
    text = excerpt(DEFAULT_SOUL) if name == "soul" else ""
    return PersonaPart(name, level, str(NOTHING[name]), text, others=others)


def excerpt(text: str) -> str:
    """The first words in a row, without headings and marks of Markdown: they take room and tell little."""
    lines = [line.strip().removeprefix("- ") for line in text[:2_000].splitlines()]
    said = " ".join([line for line in lines if line and not line.startswith("#")]).replace("**", "")
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


def said_by(row: Record) -> tuple[str, list[str]]:
    """Its own words, and the short facts beside them."""
    if isinstance(row, Identity):
        return row.text, [fact for fact in (row.name, row.creature, row.vibe) if fact]
    if isinstance(row, UserProfile):
        return row.notes, [fact for fact in (row.name, row.timezone, row.location) if fact]
    return cast("Soul", row).text or DEFAULT_SOUL, []


def users(agent: Agent, name: str) -> int:
    """Counted with the agent, where its page asked for it."""
    return int(getattr(agent, f"{name}_users", 0))


# Layouts that are not here say nothing about the use of single tools.
TABLES: dict[str, Guidelines] = {
    "dramatis": dramatis.GUIDELINES,
    "opal": opal.GUIDELINES,
    "pi": pi.GUIDELINES,
    "moltis": Guidelines(TOOL_RULES),
}


@dataclass(frozen=True)
class Guidance:
    """One line, and the tools that it stands there for; none where it always stands."""

    words: str
    tools: Sequence[str]
    # Whether the tool's own record says it, and not the layout.
    is_own: bool = False


def guidance_for(layout: str, own: Mapping[str, Sequence[str]]) -> list[Guidance]:
    """In the order of the prompt; `own` are the active tools by name with their own guidelines."""
    table = TABLES.get(layout)
    if table is None:
        return []
    rules = {line: rule for rule in (*table.rules, *table.standing) for line in rule.words}
    told = table.told(own, own)
    return [
        Guidance(line, [name], is_own=True) if name else Guidance(line, behind(rules[line], own.keys()))
        for line, name in told.items()
    ]


def behind(rule: Rule, names: AbstractSet[str]) -> list[str]:
    """The tools of an agent that a rule looks at."""
    return [name for name in names if name in rule.needs.every or name in rule.needs.some]
