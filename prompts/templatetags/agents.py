"""Template tags of the agent pages: header, tabs, effective settings and tool guidance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from personas.models import Agent, AgentTool
from prompts.publishing.inputs.effective_settings import (
    EffectiveSettings,
    EffectiveValue,
    describe_ledger_retention,
)
from prompts.studio.agent_pages.cards import (
    GUIDELINES_BY_LAYOUT,
    GuidanceLine,
    PersonaCard,
    list_guidance_lines,
    list_persona_cards,
)
from prompts.studio.agent_pages.selectors import (
    AgentSummary,
    ChannelStatus,
    build_agent_summary,
    get_production_channels,
    list_channel_statuses,
)
from skills.agent_context.effective import EffectiveFile

register = template.Library()

AGENT_TABS = (
    ("persona", gettext_lazy("Persona"), "agents:detail"),
    ("memory", gettext_lazy("Memory"), "agents:memory"),
    ("skills", gettext_lazy("Skills"), "agent-skills:list"),
    ("tools", gettext_lazy("Tools"), "agents:tools"),
    ("context", gettext_lazy("Context"), "agent-context:detail"),
    ("channels", gettext_lazy("Channels"), "agent-channels:list"),
    ("versions", gettext_lazy("Versions"), "versions:list"),
    ("activity", gettext_lazy("Activity"), "agent-activity:list"),
)
# Maps view names and URL namespaces to tabs. View names are looked up first, because three tabs share the
# namespace "agents".
TABS_BY_VIEW = {
    "agents:memory": "memory",
    "agents:add-memory": "memory",
    "agents:tools": "tools",
    "agents": "persona",
    "agent-skills": "skills",
    "agent-context": "context",
    "agent-channels": "channels",
    "versions": "versions",
    "agent-activity": "activity",
}
LEVEL_LABELS = {
    "prompt": gettext_lazy("from this prompt"),
    "channel": gettext_lazy("from the channel"),
    "agent": gettext_lazy("from the agent"),
    "file": gettext_lazy("from a file"),
    "workspace": gettext_lazy("from the workspace"),
    "built in": gettext_lazy("built in"),
}


@dataclass(frozen=True)
class AgentTab:
    """A tab of the agent pages."""

    key: str
    label: str
    url: str
    is_current: bool


@register.simple_tag(takes_context=True)
def agent_tabs(context: dict[str, Any], agent: Agent) -> list[AgentTab]:
    """List all tabs and mark the one of the current page."""
    match = context["request"].resolver_match
    current = TABS_BY_VIEW.get(match.view_name) or TABS_BY_VIEW.get(match.namespace, "")
    url_args = [context["workspace"].slug, agent.slug]
    return [
        AgentTab(key, str(label), reverse(route, args=url_args), key == current)
        for key, label, route in AGENT_TABS
    ]


@register.simple_tag(takes_context=True)
def current_agent_tab(context: dict[str, Any]) -> str:
    """Return the label of the current tab, for the heading of the page."""
    match = context["request"].resolver_match
    current = TABS_BY_VIEW.get(match.view_name) or TABS_BY_VIEW.get(match.namespace, "")
    return next((str(label) for key, label, _ in AGENT_TABS if key == current), "")


@register.simple_tag(takes_context=True)
def agent_summary(context: dict[str, Any], agent: Agent) -> AgentSummary:
    return build_agent_summary(agent, get_channel_statuses(context, agent))


def get_channel_statuses(context: dict[str, Any], agent: Agent) -> Sequence[ChannelStatus]:
    """Return the channel statuses, loaded once per request for both the header and the tab."""
    if "channel_statuses" in context:
        return list(context["channel_statuses"])
    request = context["request"]
    if not hasattr(request, "channel_statuses"):
        request.channel_statuses = list_channel_statuses(agent)
    return list(request.channel_statuses)


@register.simple_tag(takes_context=True)
def production_channels(
    context: dict[str, Any], agent: Agent, items: Iterable[Any]
) -> list[tuple[Any, list[str]]]:
    """Pair each record with the channels whose production version contains it."""
    rows = [(item, (item.kind, getattr(item, "key", None) or item.pk)) for item in items]
    channels_by_part = get_production_channels(
        agent, [part for _, part in rows], get_channel_statuses(context, agent)
    )
    return [(item, channels_by_part.get(part, [])) for item, part in rows]


# --- effective settings --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentDefaults:
    """The effective settings of an agent without channel overrides."""

    parts: Sequence[PersonaCard]
    values: Sequence[EffectiveValue]
    retention: str


@register.simple_tag(takes_context=True)
def agent_effective_settings(
    context: dict[str, Any], agent: Agent, files: Sequence[EffectiveFile] = ()
) -> AgentDefaults:
    effective_settings = EffectiveSettings.load(agent, files)
    parts = list_persona_cards(context["workspace"], effective_settings)
    return AgentDefaults(
        parts, effective_settings.list_values(), describe_ledger_retention(context["workspace"])
    )


@register.simple_tag
def agent_setting(agent: Agent, name: str) -> EffectiveValue:
    """Return the effective value of one setting with the level it comes from."""
    effective_settings = EffectiveSettings.load(agent)
    return effective_settings.get_value(name, effective_settings.get_settings())


@register.simple_tag(takes_context=True)
def level_chip(
    context: dict[str, Any], level: str, agent: Agent, channel: str = "", url: str = ""
) -> SafeString:
    """Render the level that a value comes from, as a link for members who may edit that level."""
    label = LEVEL_LABELS.get(level, level)
    target_url = (url or get_level_url(context, level, agent, channel)) if context["can"].edit else ""
    if not target_url:
        return format_html('<span class="dr-from">{}</span>', label)
    return format_html('<a class="dr-from" href="{}">{}</a>', target_url, label)


def get_level_url(context: dict[str, Any], level: str, agent: Agent, channel: str) -> str:
    slug = context["workspace"].slug
    if level == "workspace":
        return reverse("prompt-settings:workspace", args=[slug])
    if level == "prompt" and channel:
        return reverse("prompt-settings:prompt", args=[slug, agent.slug, channel])
    if level == "channel" and channel:
        return reverse("prompt-settings:channel", args=[slug, channel])
    return reverse("prompt-settings:agent", args=[slug, agent.slug]) if level == "agent" else ""


# --- tools ---------------------------------------------------------------------------------------------


@register.simple_tag
def tool_guidance(agent: Agent, active: Sequence[AgentTool]) -> list[GuidanceLine]:
    """List the guidance lines that the agent's active tools add to its prompts."""
    return list_guidance_lines(agent.layout, {link.tool.name: link.tool.guideline_lines() for link in active})


@register.filter
def has_tool_guidance(layout: str) -> bool:
    """Return whether a layout contains guidance for single tools."""
    return layout in GUIDELINES_BY_LAYOUT
