"""The versions of one prompt as people look through them: newest first, with labels, causes and growth."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, QuerySet

from personas.models import Agent, Workspace
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    BuildCause,
    LabelMove,
    LabelRule,
    PromptLabel,
    PromptVersion,
)
from prompts.provenance.causes import SHOWN, Cause, causes_in_words
from prompts.versions.selectors import labels_of, versions_of

PAGE_SIZE = 25
# What a list does not show of a version, and would be long in loading.
HEAVY = ("segments", "lockfile", "sizes", "causes")
# More causes than this are not counted: the build that takes them in is near.
SHOWN_PENDING, MOST_PENDING = 5, 200


@dataclass(frozen=True)
class Entry:
    """One version on the timeline."""

    version: PromptVersion
    labels: Sequence[str]
    causes: Sequence[Cause]
    more_causes: int
    # Tokens more or fewer than the version before; none for the first.
    delta: int | None
    # Whether it names the hash of the version before.
    is_linked: bool


@dataclass(frozen=True)
class Pending:
    """Changes that wait to be built into the prompts of an agent."""

    count: int = 0
    causes: Sequence[Cause] = field(default_factory=list)


class NumberedPages(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    """Versions are numbered without gaps: pages need no counting, and the last is as near as the first."""

    def __init__(self, prompt: AgentPrompt) -> None:
        super().__init__(versions_of(prompt), PAGE_SIZE)
        self.prompt = prompt

    @property
    def count(self) -> int:
        return self.prompt.last_number

    def page(self, number: int | str) -> Page[PromptVersion]:
        known = self.validate_number(number)
        newest = self.count - (known - 1) * PAGE_SIZE
        rows = versions_of(self.prompt).filter(number__lte=newest, number__gt=newest - PAGE_SIZE - 1)
        # One more than is shown: the oldest on the page grows from it.
        return Page(list(rows), known, self)


def prompts_of_agent(workspace: Workspace, slug: str) -> QuerySet[AgentPrompt]:
    """On every channel it ever spoke on, those it speaks on now first, each with its agent."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__slug=slug)
    whole = with_latest(rows).select_related("agent__identity", "agent__parent")
    return whole.order_by("-is_live", "channel__name", "pk")


def with_latest(rows: QuerySet[AgentPrompt]) -> QuerySet[AgentPrompt]:
    """Prompts with their agent, channel and the light columns of the latest version."""
    rows = rows.select_related("agent", "channel", "latest")
    return rows.defer(*[f"latest__{name}" for name in HEAVY])


def entries_on(page: Page[PromptVersion], labels: dict[int, list[str]]) -> list[Entry]:
    """The versions of a page with all that is said of them; one query, for the names in the causes."""
    rows = list(page.object_list)
    before = {version.number: version for version in rows}
    shown = rows[:PAGE_SIZE]
    if not shown:
        return []
    told = causes_in_words(shown[0].workspace_id, [version.causes for version in shown])
    return [
        entry(version, before.get(version.number - 1), labels.get(version.pk, []), causes)
        for version, causes in zip(shown, told, strict=True)
    ]


def entry(
    version: PromptVersion, before: PromptVersion | None, labels: Sequence[str], causes: Sequence[Cause]
) -> Entry:
    return Entry(
        version,
        labels,
        causes,
        max(0, len(version.causes) - SHOWN),
        version.tokens - before.tokens if before else None,
        version.previous_hash == (before.hash if before else ""),
    )


def labels_by_version(prompt: AgentPrompt, labels: Sequence[PromptLabel]) -> dict[int, list[str]]:
    """Latest and production first, then the others by name."""
    found: dict[int, list[str]] = {prompt.latest_id: [LATEST]} if prompt.latest_id else {}
    for label in sorted(labels, key=lambda row: (row.name != PRODUCTION, row.name)):
        found.setdefault(label.version_id, []).append(label.name)
    return found


def pending_of(agent: Agent) -> Pending:
    rows = BuildCause.objects.in_workspace(agent.workspace_id).filter(agent=agent).order_by("-pk")
    waiting: list[dict[str, Any]] = list(rows.values_list("cause", flat=True)[:MOST_PENDING])
    if not waiting:
        return Pending()
    [words] = causes_in_words(agent.workspace_id, [waiting[::-1]], SHOWN_PENDING)
    return Pending(len(waiting), words)


def labels_with_rules(prompt: AgentPrompt) -> QuerySet[PromptLabel]:
    """Where the labels of a prompt stand, and whether only owners move them."""
    rules = LabelRule.objects.in_workspace(prompt.workspace_id).filter(
        is_protected=True, name=OuterRef("name")
    )
    return labels_of(prompt).annotate(is_protected=Exists(rules))


def with_past(prompt: AgentPrompt, label: str = PRODUCTION) -> QuerySet[PromptVersion]:
    """The versions of a prompt, with whether a label has ever led there: only then can it be put back."""
    moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    return rows.annotate(was_labelled=Exists(moves.filter(version=OuterRef("pk"))))
