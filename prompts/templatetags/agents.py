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
from prompts.agent_pages.cards import (
    GUIDELINES_BY_LAYOUT,
    GuidanceLine,
    PersonaCard,
    list_guidance_lines,
    list_persona_cards,
)
from prompts.agent_pages.selectors import (
    AgentSummary,
    ChannelStatus,
    build_agent_summary,
    list_channel_statuses,
)
from prompts.agent_pages.selectors import get_production_channels as channels_holding
from prompts.inputs.effective_settings import EffectiveSettings, EffectiveValue, describe_ledger_retention
from skills.agent_context.effective import EffectiveFile

register = template.Library()

AGENT_TABS = (
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
TABS_BY_VIEW = {
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
LEVEL_LABELS = {
    "channel": gettext_lazy("from the channel"),
    "agent": gettext_lazy("from the agent"),
    "file": gettext_lazy("from a file"),
    "workspace": gettext_lazy("from the workspace"),
    "built in": gettext_lazy("built in"),
}


@dataclass(frozen=True)
class AgentTab:
    """One of an agent's pages."""

    key: str
    label: str
    url: str
    is_current: bool


@register.simple_tag(takes_context=True)
def agent_tabs(context: dict[str, Any], agent: Agent) -> list[AgentTab]:
    """All tabs, with the one that the page at hand belongs to."""
    match = context["request"].resolver_match
    current = TABS_BY_VIEW.get(match.view_name) or TABS_BY_VIEW.get(match.namespace, "")
    place = [context["workspace"].slug, agent.slug]
    return [
        AgentTab(key, str(label), reverse(route, args=place), key == current)
        for key, label, route in AGENT_TABS
    ]


@register.simple_tag(takes_context=True)
def current_agent_tab(context: dict[str, Any]) -> str:
    """The word of the current tab, for the page's own heading."""
    match = context["request"].resolver_match
    current = TABS_BY_VIEW.get(match.view_name) or TABS_BY_VIEW.get(match.namespace, "")
    return next((str(label) for key, label, _ in AGENT_TABS if key == current), "")


@register.simple_tag(takes_context=True)
def agent_summary(context: dict[str, Any], agent: Agent) -> AgentSummary:
    return build_agent_summary(agent, get_channel_statuses(context, agent))


def get_channel_statuses(context: dict[str, Any], agent: Agent) -> Sequence[ChannelStatus]:
    """The header and the tab below it ask the same, so it is worked out once for each page."""
    if "agent_lines" in context:
        return list(context["agent_lines"])
    request = context["request"]
    if not hasattr(request, "agent_lines"):
        request.agent_lines = list_channel_statuses(agent)
    return list(request.agent_lines)


@register.simple_tag(takes_context=True)
def production_channels(
    context: dict[str, Any], agent: Agent, items: Iterable[Any]
) -> list[tuple[Any, list[str]]]:
    """Each record with the channels whose production version holds it."""
    rows = [(one, (one.kind, getattr(one, "key", None) or one.pk)) for one in items]
    held = channels_holding(agent, [part for _, part in rows], get_channel_statuses(context, agent))
    return [(one, held.get(part, [])) for one, part in rows]


# --- where values come from ----------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentDefaults:
    """What holds for an agent wherever no channel says otherwise."""

    parts: Sequence[PersonaCard]
    values: Sequence[EffectiveValue]
    retention: str


@register.simple_tag(takes_context=True)
def agent_effective_settings(
    context: dict[str, Any], agent: Agent, files: Sequence[EffectiveFile] = ()
) -> AgentDefaults:
    deciding = EffectiveSettings.load(agent, files)
    parts = list_persona_cards(context["workspace"], deciding)
    return AgentDefaults(parts, deciding.list_values(), describe_ledger_retention(context["workspace"]))


@register.simple_tag
def agent_setting(agent: Agent, name: str) -> EffectiveValue:
    """One value with its level."""
    deciding = EffectiveSettings.load(agent)
    return deciding.get_value(name, deciding.get_settings())


@register.simple_tag(takes_context=True)
def level_chip(
    context: dict[str, Any], level: str, agent: Agent, channel: str = "", url: str = ""
) -> SafeString:
    """Quietly, where a value was decided; a link for those who may change it there."""
    words = LEVEL_LABELS.get(level, level)
    place = (url or get_level_url(context, level, agent, channel)) if context["can"].edit else ""
    if not place:
        return format_html('<span class="dr-from">{}</span>', words)
    return format_html('<a class="dr-from" href="{}">{}</a>', place, words)


def get_level_url(context: dict[str, Any], level: str, agent: Agent, channel: str) -> str:
    slug = context["workspace"].slug
    if level == "workspace":
        return reverse("prompt-settings:workspace", args=[slug])
    if level == "channel" and channel:
        return reverse("prompt-settings:channel", args=[slug, channel])
    return reverse("prompt-settings:agent", args=[slug, agent.slug]) if level == "agent" else ""


# --- tools ---------------------------------------------------------------------------------------------


@register.simple_tag
def tool_guidance(agent: Agent, active: Sequence[AgentTool]) -> list[GuidanceLine]:
    """The lines that the agent's active tools put into its prompts."""
    return list_guidance_lines(agent.layout, {link.tool.name: link.tool.guideline_lines() for link in active})


@register.filter
def has_tool_guidance(layout: str) -> bool:
    """Whether a layout says anything about the use of single tools."""
    return layout in GUIDELINES_BY_LAYOUT


@register.filter
def skill_assignment_label(way: str) -> str:
    """How an agent came to have a skill."""
    return {
        "attached": _("Attached to this agent"),
        "for all": _("For every agent"),
        "found": _("Found by its rules"),
        "handed": _("Handed to this agent"),
        "handed to all": _("Handed to every agent"),
    }.get(way, way)
