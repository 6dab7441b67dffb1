"""The part picker: all parts of a prompt, grouped by kind, with links that open them in the Studio."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from personas.models import Agent, Channel, Record
from prompts.models import PromptSettings
from prompts.publishing.provenance.origins import RECORD_KINDS
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.text_view import StudioText

PART_KIND_TITLES: dict[str, str | Promise] = {
    "identity": _("Identity"),
    "soul": _("Soul"),
    "user_profile": _("User profile"),
    "agent": _("Agent"),
    "responsibility": _("Responsibilities"),
    "memory": _("Memories"),
    "skill": _("Skills"),
    "tool": _("Tools"),
    "channel": _("Channel"),
    "prompt_settings": _("Prompt settings"),
    "context_file": _("Context files"),
}
# Kinds for which the picker has a link to create a record: their records belong to the agent.
NEW_PART_LABELS = {"responsibility": _("New responsibility"), "memory": _("New memory")}
MAX_PART_CHOICES = 40


@dataclass(frozen=True)
class PartChoice:
    """One link of the part picker."""

    kind: str
    name: str
    href: str
    is_current: bool = False


@dataclass
class PartGroup:
    kind: str
    title: str | Promise
    choices: list[PartChoice] = field(default_factory=list)
    hidden_count: int = 0
    add_href: str = ""
    add_label: str | Promise = ""


def list_part_groups(
    studio_text: StudioText | None, location: StudioLocation, agent: Agent, channel: Channel | None
) -> list[PartGroup]:
    """List the parts of the prompt and the agent's own parts, even those without text in the prompt."""
    choices: dict[str, dict[str, PartChoice]] = {kind: {} for kind in PART_KIND_TITLES}
    for record in list_agent_parts(agent, channel):
        add_part_choice(
            choices, location, record.kind, str(getattr(record, RECORD_KINDS[record.kind].key)), str(record)
        )
    for source in studio_text.sources.values() if studio_text else ():
        label = source.origin_label
        if label.kind in choices and label.key and not source.part:
            choices[label.kind].setdefault(label.key, PartChoice(label.kind, label.name, source.href))
        elif label.kind in choices and label.key:
            add_part_choice(choices, location, label.kind, label.key, label.name)
    return [group for kind in PART_KIND_TITLES if (group := build_part_group(kind, choices[kind], location))]


def list_agent_parts(agent: Agent, channel: Channel | None) -> Iterable[Record]:
    parts = [agent.identity, agent.soul, agent.user_profile, agent, channel]
    return [*(part for part in parts if part is not None), *list_settings_levels(agent, channel)]


def list_settings_levels(agent: Agent, channel: Channel | None) -> list[PromptSettings]:
    """List the levels of a prompt's settings, the nearest first, whether or not they have a row."""
    levels: list[dict[str, Any]] = [{"agent": agent}, {}]
    if channel is not None:
        levels = [{"agent": agent, "channel": channel}, {"channel": channel}, *levels]
    return [PromptSettings(workspace_id=agent.workspace_id, **level) for level in levels]


def add_part_choice(
    choices: dict[str, dict[str, PartChoice]], location: StudioLocation, kind: str, key: str, name: str
) -> None:
    part = PartRef(RECORD_KINDS[kind].family, key)
    choice = PartChoice(kind, name, location.get_part_url(part), part == location.part)
    choices[kind].setdefault(key, choice)


def build_part_group(kind: str, choices: dict[str, PartChoice], location: StudioLocation) -> PartGroup | None:
    all_choices = list(choices.values())
    # The open part is always visible, even beyond the limit.
    visible = all_choices[:MAX_PART_CHOICES] + [
        choice for choice in all_choices[MAX_PART_CHOICES:] if choice.is_current
    ]
    group = PartGroup(kind, PART_KIND_TITLES[kind], visible, len(choices) - len(visible))
    if kind in NEW_PART_LABELS:
        group.add_href = location.get_part_url(PartRef(RECORD_KINDS[kind].family))
        group.add_label = NEW_PART_LABELS[kind]
    return group if visible or group.add_href else None
