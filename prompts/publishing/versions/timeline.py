"""Timeline of a prompt: its versions, newest first, with labels, causes and token changes."""

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
from prompts.publishing.provenance.causes import MAX_SHOWN_CAUSES, CauseLabel, describe_causes
from prompts.publishing.versions.selectors import get_prompt_labels, list_versions

PAGE_SIZE = 25
# Large columns that a list does not show.
HEAVY_COLUMNS = ("segments", "lockfile", "sizes", "causes")
# How many pending causes are shown, and up to how many are counted.
MAX_SHOWN_PENDING, MAX_PENDING = 5, 200


@dataclass(frozen=True)
class TimelineEntry:
    """One version on the timeline."""

    version: PromptVersion
    labels: Sequence[str]
    causes: Sequence[CauseLabel]
    more_causes: int
    # Change in tokens since the previous version; None for the first version.
    delta: int | None
    # Whether previous_hash equals the hash of the previous version.
    is_linked: bool


@dataclass(frozen=True)
class PendingChanges:
    """Changes not yet built into the prompts of an agent."""

    count: int = 0
    causes: Sequence[CauseLabel] = field(default_factory=list)


class VersionPaginator(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    """Paginate versions by number: numbers have no gaps, so neither COUNT nor OFFSET is needed."""

    def __init__(self, prompt: AgentPrompt) -> None:
        super().__init__(list_versions(prompt), PAGE_SIZE)
        self.prompt = prompt

    @property
    def count(self) -> int:
        return self.prompt.last_number

    def page(self, number: int | str) -> Page[PromptVersion]:
        page_number = self.validate_number(number)
        newest = self.count - (page_number - 1) * PAGE_SIZE
        rows = list_versions(self.prompt).filter(number__lte=newest, number__gt=newest - PAGE_SIZE - 1)
        # One version more than is shown: it is needed for the token change of the oldest shown version.
        return Page(list(rows), page_number, self)


def list_agent_prompts(workspace: Workspace, slug: str) -> QuerySet[AgentPrompt]:
    """List the agent's prompts on current and former channels, current ones first."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__slug=slug)
    prompts = select_latest_version(rows).select_related("agent__identity", "agent__parent")
    return prompts.order_by("-is_active", "channel__name", "pk")


def select_latest_version(rows: QuerySet[AgentPrompt]) -> QuerySet[AgentPrompt]:
    """Join agent, channel and the latest version without its large columns."""
    rows = rows.select_related("agent", "channel", "latest")
    return rows.defer(*[f"latest__{name}" for name in HEAVY_COLUMNS])


def list_timeline_entries(page: Page[PromptVersion], labels: dict[int, list[str]]) -> list[TimelineEntry]:
    """Build the timeline entries of a page; needs one query, for the names in the causes."""
    rows = list(page.object_list)
    by_number = {version.number: version for version in rows}
    versions = rows[:PAGE_SIZE]
    if not versions:
        return []
    causes_by_version = describe_causes(versions[0].workspace_id, [version.causes for version in versions])
    return [
        build_timeline_entry(version, by_number.get(version.number - 1), labels.get(version.pk, []), causes)
        for version, causes in zip(versions, causes_by_version, strict=True)
    ]


def build_timeline_entry(
    version: PromptVersion, before: PromptVersion | None, labels: Sequence[str], causes: Sequence[CauseLabel]
) -> TimelineEntry:
    return TimelineEntry(
        version,
        labels,
        causes,
        max(0, len(version.causes) - MAX_SHOWN_CAUSES),
        version.tokens - before.tokens if before else None,
        version.previous_hash == (before.hash if before else ""),
    )


def group_labels_by_version(prompt: AgentPrompt, labels: Sequence[PromptLabel]) -> dict[int, list[str]]:
    """Return label names by version id: latest and production first, then by name."""
    names_by_version: dict[int, list[str]] = {prompt.latest_id: [LATEST]} if prompt.latest_id else {}
    for label in sorted(labels, key=lambda row: (row.name != PRODUCTION, row.name)):
        names_by_version.setdefault(label.version_id, []).append(label.name)
    return names_by_version


def get_pending_changes(agent: Agent) -> PendingChanges:
    rows = BuildCause.objects.in_workspace(agent.workspace_id).filter(agent=agent).order_by("-pk")
    pending: list[dict[str, Any]] = list(rows.values_list("cause", flat=True)[:MAX_PENDING])
    if not pending:
        return PendingChanges()
    [labels] = describe_causes(agent.workspace_id, [pending[::-1]], MAX_SHOWN_PENDING)
    return PendingChanges(len(pending), labels)


def list_labels_with_rules(prompt: AgentPrompt) -> QuerySet[PromptLabel]:
    """List the labels of a prompt, annotated with whether they are protected (only owners move them)."""
    rules = LabelRule.objects.in_workspace(prompt.workspace_id).filter(
        is_protected=True, name=OuterRef("name")
    )
    return get_prompt_labels(prompt).annotate(is_protected=Exists(rules))


def list_versions_with_history(prompt: AgentPrompt, label: str = PRODUCTION) -> QuerySet[PromptVersion]:
    """List versions annotated with whether the label ever pointed to them, which a roll-back requires."""
    moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    return rows.annotate(was_labelled=Exists(moves.filter(version=OuterRef("pk"))))
