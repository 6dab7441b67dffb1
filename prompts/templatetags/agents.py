"""What the pages of an agent show of its prompts: the header, the tabs, and where each value comes from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.models import Agent, AgentTool
from prompts.agent_pages.cards import TABLES, Guidance, PersonaPart, guidance_for, persona_parts
from prompts.agent_pages.selectors import Card, Line, card_of, lines_of
from prompts.agent_pages.selectors import in_production as channels_holding
from prompts.inputs.effective_settings import Deciding, Value, kept_for
from skills.agent_context.effective import FileInUse

register = template.Library()

TABS = (
    ("persona", gettext_lazy("Persona"), "agents:detail"),
    ("memory", gettext_lazy("Memory"), "agents:memory"),
    ("skills", gettext_lazy("Skills"), "agent-skills:list"),
    ("tools", gettext_lazy("Tools"), "agents:tools"),
    ("context", gettext_lazy("Context"), "contexts:detail"),
    ("channels", gettext_lazy("Channels"), "agent-channels:list"),
    ("versions", gettext_lazy("Versions"), "versions:list"),
    ("activity", gettext_lazy("Activity"), "agent-activity:list"),
)
# Pages below a tab: all of a namespace, except that two tabs share one.
WHERE = {
    "agents:memory": "memory",
    "agents:add-memory": "memory",
    "agents:tools": "tools",
    "agents": "persona",
    "agent-skills": "skills",
    "contexts": "context",
    "agent-channels": "channels",
    "versions": "versions",
    "agent-activity": "activity",
}
LEVELS = {
    "channel": gettext_lazy("from the channel"),
    "agent": gettext_lazy("from the agent"),
    "file": gettext_lazy("from a file"),
    "workspace": gettext_lazy("from the workspace"),
    "built in": gettext_lazy("built in"),
}


@dataclass(frozen=True)
class Tab:
    """One of an agent's pages."""

    key: str
    label: str
    url: str
    is_current: bool


@register.simple_tag(takes_context=True)
def agent_tabs(context: dict[str, Any], agent: Agent) -> list[Tab]:
    """All tabs, with the one that the page at hand belongs to."""
    match = context["request"].resolver_match
    current = WHERE.get(match.view_name) or WHERE.get(match.namespace, "")
    place = [context["workspace"].slug, agent.slug]
    return [Tab(key, str(label), reverse(route, args=place), key == current) for key, label, route in TABS]


@register.simple_tag(takes_context=True)
def agent_tab(context: dict[str, Any]) -> str:
    """The word of the current tab, for the page's own heading."""
    match = context["request"].resolver_match
    current = WHERE.get(match.view_name) or WHERE.get(match.namespace, "")
    return next((str(label) for key, label, _ in TABS if key == current), "")


@register.simple_tag(takes_context=True)
def agent_card(context: dict[str, Any], agent: Agent) -> Card:
    return card_of(agent, lines_for(context, agent))


def lines_for(context: dict[str, Any], agent: Agent) -> Sequence[Line]:
    """The header and the tab below it ask the same, so it is worked out once for each page."""
    if "agent_lines" in context:
        return list(context["agent_lines"])
    request = context["request"]
    if not hasattr(request, "agent_lines"):
        request.agent_lines = lines_of(agent)
    return list(request.agent_lines)


@register.simple_tag(takes_context=True)
def in_production(context: dict[str, Any], agent: Agent, items: Iterable[Any]) -> list[tuple[Any, list[str]]]:
    """Each record with the channels whose production version holds it."""
    rows = [(one, (one.kind, getattr(one, "key", None) or one.pk)) for one in items]
    held = channels_holding(agent, [part for _, part in rows], lines_for(context, agent))
    return [(one, held.get(part, [])) for one, part in rows]


# --- where values come from ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Decided:
    """What holds for an agent wherever no channel says otherwise."""

    parts: Sequence[PersonaPart]
    values: Sequence[Value]
    retention: str


@register.simple_tag(takes_context=True)
def agent_decided(context: dict[str, Any], agent: Agent, files: Sequence[FileInUse] = ()) -> Decided:
    deciding = Deciding.of(agent, files)
    parts = persona_parts(context["workspace"], deciding)
    return Decided(parts, deciding.values(), kept_for(context["workspace"]))


@register.simple_tag
def agent_setting(agent: Agent, name: str) -> Value:
    """One value with its level."""
    deciding = Deciding.of(agent)
    return deciding.value(name, deciding.settings())


@register.simple_tag(takes_context=True)
def level_chip(
    context: dict[str, Any], level: str, agent: Agent, channel: str = "", url: str = ""
) -> SafeString:
    """Quietly, where a value was decided; a link for those who may change it there."""
    words = LEVELS.get(level, level)
    place = (url or level_address(context, level, agent, channel)) if context["can"].edit else ""
    if not place:
        return format_html('<span class="dr-from">{}</span>', words)
    return format_html('<a class="dr-from" href="{}">{}</a>', place, words)


def level_address(context: dict[str, Any], level: str, agent: Agent, channel: str) -> str:
    slug = context["workspace"].slug
    if level == "workspace":
        return reverse("prompt-settings:workspace", args=[slug])
    if level == "channel" and channel:
        return reverse("prompt-settings:channel", args=[slug, channel])
    return reverse("prompt-settings:agent", args=[slug, agent.slug]) if level == "agent" else ""


# --- tools ---------------------------------------------------------------------------------------------


@register.simple_tag
def tool_guidance(agent: Agent, active: Sequence[AgentTool]) -> list[Guidance]:
    """The lines that the agent's active tools put into its prompts."""
    return guidance_for(agent.layout, {link.tool.name: link.tool.guideline_lines() for link in active})


@register.filter
def guides_tools(layout: str) -> bool:
    """Whether a layout says anything about the use of single tools."""
    return layout in TABLES


@register.filter
def way_words(way: str) -> str:
    """How an agent came to have a skill."""
    return {
        "attached": _("Attached to this agent"),
        "for all": _("For every agent"),
        "found": _("Found by its rules"),
        "handed": _("Handed to this agent"),
        "handed to all": _("Handed to every agent"),
    }.get(way, way)
