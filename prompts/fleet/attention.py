"""What somebody should look at: how much of each, in words, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import ngettext

from prompts.fleet.counts import Figures


@dataclass(frozen=True)
class Waiting:
    """One kind of thing that waits for someone."""

    count: int
    words: str
    url: str
    icon: str
    is_grave: bool = False


def waiting_in(figures: Figures, slug: str) -> Sequence[Waiting]:
    """The gravest first, and nothing that is at nought."""
    found = [*grave(figures, slug), *everyday(figures, slug)]
    return [one for one in found if one.count]


def grave(figures: Figures, slug: str) -> Sequence[Waiting]:
    """Something is wrong."""
    unbuilt, held, failing = figures.unbuilt, figures.quarantined, figures.failing_sources
    rows = [
        (unbuilt, ngettext("prompt not built", "prompts not built", unbuilt), "home", "error"),
        (held, ngettext("file in quarantine", "files in quarantine", held), "inbox:list", "quarantine"),
        (failing, ngettext("source unread", "sources unread", failing), "sources:list", "source"),
    ]
    queries = {"home": "?state=problems", "inbox:list": "?state=quarantined"}
    return [
        Waiting(count, words, reverse(route, args=[slug]) + queries.get(route, ""), icon, is_grave=True)
        for count, words, route, icon in rows
    ]


def everyday(figures: Figures, slug: str) -> Sequence[Waiting]:
    """Somebody's word is wanted."""
    asked, memories, files = figures.requested, figures.proposed, figures.waiting_files
    rows = [
        (asked, ngettext("release to approve", "releases to approve", asked), "releases:list", "release"),
        (memories, ngettext("memory to approve", "memories to approve", memories), "memories:list", "memory"),
        (files, ngettext("file in the inbox", "files in the inbox", files), "inbox:list", "inbox"),
    ]
    queries = {"releases:list": "?status=requested", "memories:list": "?state=proposed"}
    return [
        Waiting(count, words, reverse(route, args=[slug]) + queries.get(route, ""), icon)
        for count, words, route, icon in rows
    ]
