"""Every part that feeds a prompt, grouped by kind, for whoever wants to open another."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from personas.models import Agent, Channel, Record
from prompts.provenance.origins import RECORD_KINDS
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
    "context_file": _("Context files"),
}
# Kinds that can be begun here, for they belong to the agent.
NEW_PART_LABELS = {"responsibility": _("New responsibility"), "memory": _("New memory")}
MAX_PART_CHOICES = 40


@dataclass(frozen=True)
class PartChoice:
    """One part: where it is opened, and whether it is."""

    kind: str
    name: str
    href: str
    is_current: bool = False


@dataclass
class PartGroup:
    kind: str
    title: str | Promise
    choices: list[PartChoice] = field(default_factory=list)
    more: int = 0
    add_href: str = ""
    add_words: str | Promise = ""


def list_part_groups(
    reading: StudioText | None, place: StudioLocation, agent: Agent, channel: Channel | None
) -> list[PartGroup]:
    """What the prompt is made of, with the agent's own parts even where they say nothing."""
    found: dict[str, dict[str, PartChoice]] = {kind: {} for kind in PART_KIND_TITLES}
    for record in list_agent_parts(agent, channel):
        add_part_choice(
            found, place, record.kind, str(getattr(record, RECORD_KINDS[record.kind].key)), str(record)
        )
    for source in reading.sources.values() if reading else ():
        told = source.told
        if told.kind in found and told.key and not source.part:
            found[told.kind].setdefault(told.key, PartChoice(told.kind, told.name, source.href))
        elif told.kind in found and told.key:
            add_part_choice(found, place, told.kind, told.key, told.name)
    return [made for kind in PART_KIND_TITLES if (made := build_part_group(kind, found[kind], place))]


def list_agent_parts(agent: Agent, channel: Channel | None) -> Iterable[Record]:
    parts = [agent.identity, agent.soul, agent.user_profile, agent, channel]
    return [part for part in parts if part is not None]


def add_part_choice(
    found: dict[str, dict[str, PartChoice]], place: StudioLocation, kind: str, key: str, name: str
) -> None:
    part = PartRef(RECORD_KINDS[kind].family, key)
    choice = PartChoice(kind, name, place.at(part=part).url(), part == place.part)
    found[kind].setdefault(key, choice)


def build_part_group(kind: str, choices: dict[str, PartChoice], place: StudioLocation) -> PartGroup | None:
    every = list(choices.values())
    # However many there are, the open one is among those that are shown.
    shown = every[:MAX_PART_CHOICES] + [choice for choice in every[MAX_PART_CHOICES:] if choice.is_current]
    made = PartGroup(kind, PART_KIND_TITLES[kind], shown, len(choices) - len(shown))
    if kind in NEW_PART_LABELS:
        made.add_href = place.at(part=PartRef(RECORD_KINDS[kind].family)).url()
        made.add_words = NEW_PART_LABELS[kind]
    return made if shown or made.add_href else None
