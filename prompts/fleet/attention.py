"""What somebody should look at: how much of each, in words, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.roles import Permission, has_permission
from prompts.fleet.counts import WorkspaceCounts


@dataclass(frozen=True)
class AttentionItem:
    """One kind of thing that waits for someone."""

    count: int
    words: str
    url: str
    icon: str
    is_grave: bool = False


def list_attention_items(figures: WorkspaceCounts, slug: str) -> Sequence[AttentionItem]:
    """The gravest first, and nothing that is at nought."""
    found = [*list_problem_items(figures, slug), *list_review_items(figures, slug)]
    return [one for one in found if one.count]


def list_problem_items(figures: WorkspaceCounts, slug: str) -> Sequence[AttentionItem]:
    """Something is wrong."""
    unbuilt, held, failing = figures.unbuilt, figures.quarantined, figures.failing_sources
    rows = [
        (unbuilt, ngettext("prompt not built", "prompts not built", unbuilt), "home", "error"),
        (held, ngettext("file in quarantine", "files in quarantine", held), "inbox:list", "quarantine"),
        (failing, ngettext("source unread", "sources unread", failing), "sources:list", "source"),
    ]
    queries = {"home": "?state=problems", "inbox:list": "?state=quarantined"}
    return [
        AttentionItem(count, words, reverse(route, args=[slug]) + queries.get(route, ""), icon, is_grave=True)
        for count, words, route, icon in rows
    ]


def list_review_items(figures: WorkspaceCounts, slug: str) -> Sequence[AttentionItem]:
    """Somebody's word is wanted."""
    asked, memories, files = figures.requested, figures.proposed, figures.waiting_files
    rows = [
        (asked, ngettext("release to approve", "releases to approve", asked), "releases:list", "release"),
        (memories, ngettext("memory to approve", "memories to approve", memories), "memories:list", "memory"),
        (files, ngettext("file in the inbox", "files in the inbox", files), "inbox:list", "inbox"),
    ]
    queries = {"releases:list": "?status=requested", "memories:list": "?state=proposed"}
    return [
        AttentionItem(count, words, reverse(route, args=[slug]) + queries.get(route, ""), icon)
        for count, words, route, icon in rows
    ]


@dataclass(frozen=True)
class SetupStep:
    """Something to do once; no address for those who may not do it."""

    words: str
    is_done: bool
    url: str = ""


def list_setup_steps(figures: WorkspaceCounts, slug: str, role: str) -> Sequence[SetupStep]:
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
        SetupStep(
            words,
            is_done,
            reverse(route, args=[slug]) if not is_done and has_permission(role, needed) else "",
        )
        for words, is_done, route, needed in rows
    ]


def is_setup_complete(steps: Sequence[SetupStep]) -> bool:
    return all(step.is_done for step in steps)
