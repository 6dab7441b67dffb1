"""The short list that a new workspace works through; each step ticks itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from personas.roles import Permission, may
from prompts.fleet.counts import Figures


@dataclass(frozen=True)
class Step:
    """Something to do once; no address for those who may not do it."""

    words: str
    is_done: bool
    url: str = ""


def steps_for(figures: Figures, slug: str, role: str) -> Sequence[Step]:
    rows = [
        (_("Name the workspace"), True, "workspace-settings", Permission.MANAGE_MEMBERS),
        (_("Make the first agent"), figures.agents > 0, "agents:new", Permission.EDIT),
        (_("Let it speak on a channel"), figures.has_channel, "agents:list", Permission.EDIT),
        (_("Write a soul"), figures.has_soul, "souls:new", Permission.EDIT),
        (_("Make a key for a bot"), figures.has_key, "keys:new", Permission.MANAGE_KEYS),
        (_("See a first fetch"), figures.has_fetch, "ledger:list", Permission.READ),
        (_("Invite a second person"), figures.has_company, "members:list", Permission.MANAGE_MEMBERS),
    ]
    return [
        Step(words, is_done, reverse(route, args=[slug]) if not is_done and may(role, needed) else "")
        for words, is_done, route, needed in rows
    ]


def is_over(steps: Sequence[Step]) -> bool:
    return all(step.is_done for step in steps)
