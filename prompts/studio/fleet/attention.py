"""Items that need attention and setup steps of a workspace, with labels and links."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.roles import Permission, has_permission
from prompts.studio.fleet.counts import WorkspaceCounts


@dataclass(frozen=True)
class AttentionItem:
    """One kind of pending work or problem, e.g. releases to approve, with its count and a link."""

    count: int
    label: str
    url: str
    icon: str
    is_urgent: bool = False


def list_attention_items(counts: WorkspaceCounts, slug: str) -> Sequence[AttentionItem]:
    """List items with a count above zero, problems first."""
    items = [*list_problem_items(counts, slug), *list_review_items(counts, slug)]
    return [item for item in items if item.count]


def list_problem_items(counts: WorkspaceCounts, slug: str) -> Sequence[AttentionItem]:
    unbuilt, quarantined = counts.unbuilt, counts.quarantined
    failing, held, drifted = counts.failing_sources, counts.held_sources, counts.never_released
    rows = [
        (unbuilt, ngettext("prompt not built", "prompts not built", unbuilt), "home", "error"),
        (
            quarantined,
            ngettext("file in quarantine", "files in quarantine", quarantined),
            "inbox:list",
            "quarantine",
        ),
        (failing, ngettext("unreachable source", "unreachable sources", failing), "sources:list", "source"),
        (
            held,
            ngettext("source with missing files", "sources with missing files", held),
            "sources:list",
            "warning",
        ),
        (
            drifted,
            ngettext(
                "bot with a prompt that was never released",
                "bots with a prompt that was never released",
                drifted,
            ),
            "bots:list",
            "warning",
        ),
    ]
    queries = {
        "home": "?state=problems",
        "inbox:list": "?status=quarantined",
        "bots:list": "?status=never_released",
    }
    return [
        AttentionItem(
            count, label, reverse(route, args=[slug]) + queries.get(route, ""), icon, is_urgent=True
        )
        for count, label, route, icon in rows
    ]


def list_review_items(counts: WorkspaceCounts, slug: str) -> Sequence[AttentionItem]:
    """List what waits for a decision: releases, memories, files."""
    releases, memories, files = counts.requested, counts.proposed, counts.waiting_files
    rows = [
        (
            releases,
            ngettext("release to approve", "releases to approve", releases),
            "releases:list",
            "release",
        ),
        (memories, ngettext("memory to approve", "memories to approve", memories), "memories:list", "memory"),
        (files, ngettext("file in the inbox", "files in the inbox", files), "inbox:list", "inbox"),
    ]
    queries = {"releases:list": "?status=requested", "memories:list": "?status=proposed"}
    return [
        AttentionItem(count, label, reverse(route, args=[slug]) + queries.get(route, ""), icon)
        for count, label, route, icon in rows
    ]


@dataclass(frozen=True)
class SetupStep:
    """A step of the setup checklist; `url` is empty if the member's role does not permit the step."""

    label: str
    is_done: bool
    url: str = ""


def list_setup_steps(counts: WorkspaceCounts, slug: str, role: str) -> Sequence[SetupStep]:
    rows = [
        (_("Name the workspace"), True, "workspace-settings", Permission.MANAGE_MEMBERS),
        (_("Create your first agent"), counts.agents > 0, "quick-start:new", Permission.EDIT),
        (_("Add a channel"), counts.has_channel, "agents:list", Permission.EDIT),
        (_("Write a soul"), counts.has_soul, "souls:new", Permission.EDIT),
        (_("Create an API key"), counts.has_key, "api-keys:new", Permission.MANAGE_KEYS),
        (_("Make your first API request"), counts.has_fetch, "ledger:list", Permission.READ),
        (_("Invite a teammate"), counts.has_company, "members:list", Permission.MANAGE_MEMBERS),
    ]
    return [
        SetupStep(
            label,
            is_done,
            reverse(route, args=[slug]) if not is_done and has_permission(role, permission) else "",
        )
        for label, is_done, route, permission in rows
    ]


def is_setup_complete(steps: Sequence[SetupStep]) -> bool:
    return all(step.is_done for step in steps)
