"""Every part that feeds a prompt, grouped by kind, for whoever wants to open another."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from personas.models import Agent, Channel, Record
from prompts.provenance.origins import KINDS
from prompts.studio.location import Part, Place
from prompts.studio.text_view import Reading

ORDER: dict[str, str | Promise] = {
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
ADDED = {"responsibility": _("New responsibility"), "memory": _("New memory")}
MOST = 40


@dataclass(frozen=True)
class Choice:
    """One part: where it is opened, and whether it is."""

    kind: str
    name: str
    href: str
    is_current: bool = False


@dataclass
class Group:
    kind: str
    title: str | Promise
    choices: list[Choice] = field(default_factory=list)
    more: int = 0
    add_href: str = ""
    add_words: str | Promise = ""


def groups_of(reading: Reading | None, place: Place, agent: Agent, channel: Channel | None) -> list[Group]:
    """What the prompt is made of, with the agent's own parts even where they say nothing."""
    found: dict[str, dict[str, Choice]] = {kind: {} for kind in ORDER}
    for record in own_parts(agent, channel):
        take(found, place, record.kind, str(getattr(record, KINDS[record.kind].key)), str(record))
    for source in reading.sources.values() if reading else ():
        told = source.told
        if told.kind in found and told.key and not source.part:
            found[told.kind].setdefault(told.key, Choice(told.kind, told.name, source.href))
        elif told.kind in found and told.key:
            take(found, place, told.kind, told.key, told.name)
    return [made for kind in ORDER if (made := group(kind, found[kind], place))]


def own_parts(agent: Agent, channel: Channel | None) -> Iterable[Record]:
    parts = [agent.identity, agent.soul, agent.user_profile, agent, channel]
    return [part for part in parts if part is not None]


def take(found: dict[str, dict[str, Choice]], place: Place, kind: str, key: str, name: str) -> None:
    part = Part(KINDS[kind].family, key)
    choice = Choice(kind, name, place.at(part=part).url(), part == place.part)
    found[kind].setdefault(key, choice)


def group(kind: str, choices: dict[str, Choice], place: Place) -> Group | None:
    every = list(choices.values())
    # However many there are, the open one is among those that are shown.
    shown = every[:MOST] + [choice for choice in every[MOST:] if choice.is_current]
    made = Group(kind, ORDER[kind], shown, len(choices) - len(shown))
    if kind in ADDED:
        made.add_href = place.at(part=Part(KINDS[kind].family)).url()
        made.add_words = ADDED[kind]
    return made if shown or made.add_href else None
