"""Compare per bot what is released, what it was served and what it reports as loaded.

A bot is an API key that uses a prompt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from personas.models import ApiKey, Workspace
from prompts.evidence.drift.details import LoadedSkill, ReportDetails, parse_report_details
from prompts.evidence.ledger.outdated_bots import (
    LOOKBACK,
    MAX_IDS_PER_QUERY,
    PROMPT_COLUMNS,
    get_label_targets,
    list_active_fetches,
)
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    BotStatus,
    DigestReport,
    LedgerEntry,
    PromptLabel,
    PromptVersion,
)
from prompts.publishing.versions.selectors import HEAVY_COLUMNS, list_heavy_columns

# In a list, bots with problems come first.
STATUS_ORDER = {status: position for position, status in enumerate(BotStatus)}
# Ids of an API key and a prompt.
BotKey = tuple[int, int]


class BotFetch(NamedTuple):
    """The last fetch of a prompt by a key."""

    ledger_id: int
    key_id: int
    prompt_id: int
    label: str
    version_id: int
    at: datetime


@dataclass(frozen=True)
class Bot:
    """A key and a prompt: the released version of its label, its last fetch and its last report."""

    key: ApiKey
    prompt: AgentPrompt
    label: str
    # None if the label was removed.
    released: PromptVersion | None
    served: PromptVersion | None
    served_at: datetime | None
    ledger_id: int | None
    report: DigestReport | None

    @cached_property
    def details(self) -> ReportDetails:
        return parse_report_details(self.report.details) if self.report else ReportDetails()

    @property
    def loaded(self) -> PromptVersion | None:
        return self.report.version if self.report else None

    @cached_property
    def status(self) -> BotStatus:
        if self.report is None or self.is_report_superseded:
            return BotStatus.UNKNOWN
        return compare_loaded_text_and_skills(self.released, self.loaded, self.details.skills)

    @property
    def is_report_superseded(self) -> bool:
        """Whether the bot was served another version after its last report, and may have loaded it."""
        return (
            self.report is not None
            and self.loaded is not None
            and self.served is not None
            and self.served_at is not None
            and self.served_at > self.report.at
            and self.served.digest != self.loaded.digest
        )

    @property
    def since(self) -> datetime | None:
        """The time of the report; of an unknown bot, the time of the fetch that no report has followed."""
        return self.served_at if self.report is None or self.is_report_superseded else self.report.at


def compare_loaded_version(released: PromptVersion | None, loaded: PromptVersion | None) -> BotStatus:
    """Compare the version that a bot has loaded with the released one. Equal texts have equal digests."""
    if loaded is None:
        return BotStatus.NEVER_RELEASED
    is_same = released is not None and released.digest == loaded.digest
    return BotStatus.SAME if is_same else BotStatus.OUTDATED


class SkillComparison(NamedTuple):
    """A skill file that a bot has loaded, or should have loaded, compared with the released version."""

    name: str
    status: BotStatus
    # Whether the released version offers the skill, and whether the bot has loaded it.
    is_offered: bool
    is_loaded: bool


def compare_loaded_skills(
    released: PromptVersion | None, skills: Sequence[LoadedSkill] | None
) -> list[SkillComparison]:
    """Compare the skill files that a bot reported with those of the released version, by name.

    A file that the version does not offer is outdated if an earlier version did, and so is one that the bot
    has not loaded.
    """
    if skills is None:
        return []
    offered = {row["name"]: row["content"] for row in released.skill_files} if released else {}
    loaded = {skill.name: skill for skill in skills}
    return [
        SkillComparison(
            name, compare_skill_file(offered.get(name), loaded.get(name)), name in offered, name in loaded
        )
        for name in sorted({*offered, *loaded})
    ]


def compare_skill_file(offered: str | None, loaded: LoadedSkill | None) -> BotStatus:
    if loaded is not None and loaded.digest == offered:
        return BotStatus.SAME
    return BotStatus.OUTDATED if loaded is None or loaded.is_known else BotStatus.NEVER_RELEASED


def compare_loaded_text_and_skills(
    released: PromptVersion | None, loaded: PromptVersion | None, skills: Sequence[LoadedSkill] | None
) -> BotStatus:
    """Return the worst status of the loaded text and of all loaded skill files."""
    statuses = [comparison.status for comparison in compare_loaded_skills(released, skills)]
    return min([compare_loaded_version(released, loaded), *statuses], key=STATUS_ORDER.__getitem__)


def get_default_label(key: ApiKey) -> str:
    """Return the label of a key that has fetched nothing: production, unless its limits exclude that."""
    labels: Sequence[str] = key.scopes.get("labels") or [PRODUCTION]
    return PRODUCTION if PRODUCTION in labels else labels[0]


def choose_label(prompt: AgentPrompt, key: ApiKey) -> str:
    """Return the label that a key has fetched last, without fetches of past versions."""
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(key=key, prompt=prompt, skill=None)
    rows = rows.exclude(label__contains="@").order_by("-at", "-pk")
    return rows.values_list("label", flat=True).first() or get_default_label(key)


def get_label_version(prompt: AgentPrompt, label: str) -> PromptVersion | None:
    """Return the version that a label points to now, with all columns; None if there is no such label."""
    if label == LATEST:
        return prompt.latest
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    row = rows.select_related("version").first()
    return row.version if row else None


def get_last_report(prompt: AgentPrompt, key: ApiKey) -> DigestReport | None:
    rows = DigestReport.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, key=key)
    return rows.order_by("-at", "-pk").first()


def list_active_reports(workspace: int, now: datetime) -> QuerySet[DigestReport]:
    """List reports of live prompts by keys that are neither revoked nor expired."""
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=now)
    rows = DigestReport.objects.in_workspace(workspace)
    return rows.filter(key__in=keys.values("pk"), prompt__is_active=True).order_by()


def list_never_released_reports(workspace: int, now: datetime) -> QuerySet[DigestReport]:
    """List the last report of each bot, if its digest matches no version."""
    later = DigestReport.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt"), key=OuterRef("key"), at__gt=OuterRef("at")
    )
    return list_active_reports(workspace, now).filter(~Exists(later), version=None)


def list_bots(workspace: Workspace | int, *, using: str = DEFAULT_DB_ALIAS) -> list[Bot]:
    """List the bots that have reported, or fetched within LOOKBACK, those with problems first."""
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    now = timezone.now()
    fetches = {
        (fetch.key_id, fetch.prompt_id): fetch for fetch in load_last_fetches(workspace_id, now, using)
    }
    reports = {
        (report.key_id, report.prompt_id): report for report in load_last_reports(workspace_id, now, using)
    }
    bots = load_bots(workspace_id, fetches, reports, using)
    return sorted(bots, key=lambda bot: (STATUS_ORDER[bot.status], bot.key.name, bot.key.pk, bot.prompt.pk))


def load_last_fetches(workspace: int, now: datetime, using: str) -> list[BotFetch]:
    rows = list_active_fetches(workspace, now - LOOKBACK, now).using(using)
    ids = group_newest_ids(rows)
    entries = LedgerEntry.objects.in_workspace(workspace).using(using).filter(at__gte=now - LOOKBACK)
    columns = ("pk", "key_id", "prompt_id", "label", "version_id", "at")
    return [
        BotFetch(*row) for part in split_ids(ids) for row in entries.filter(pk__in=part).values_list(*columns)
    ]


def load_last_reports(workspace: int, now: datetime, using: str) -> list[DigestReport]:
    ids = group_newest_ids(list_active_reports(workspace, now).using(using))
    rows = DigestReport.objects.in_workspace(workspace).using(using).select_related("version")
    rows = rows.defer(*list_heavy_columns("version"))
    return [row for part in split_ids(ids) for row in rows.filter(pk__in=part)]


def group_newest_ids(rows: QuerySet[Any]) -> list[int]:
    """Return the highest id of each key and prompt."""
    grouped = rows.values("key_id", "prompt_id").annotate(newest=Max("pk"))
    return list(grouped.values_list("newest", flat=True))


def split_ids(ids: Sequence[int]) -> Iterable[Sequence[int]]:
    """Split ids into lists of a size that SQLite accepts."""
    return [ids[start : start + MAX_IDS_PER_QUERY] for start in range(0, len(ids), MAX_IDS_PER_QUERY)]


def load_bots(
    workspace: int, fetches: dict[BotKey, BotFetch], reports: dict[BotKey, DigestReport], using: str
) -> list[Bot]:
    """Load the keys, prompts and versions of these fetches and reports, each record once."""
    pairs = fetches.keys() | reports.keys()
    keys = ApiKey.objects.in_workspace(workspace).using(using).in_bulk({key for key, _ in pairs})
    rows = AgentPrompt.objects.in_workspace(workspace).using(using).select_related("agent", "channel")
    prompts = rows.only(*PROMPT_COLUMNS).in_bulk({prompt for _, prompt in pairs})
    targets = get_label_targets(workspace, prompts, using)
    labels = {
        pair: fetches[pair].label if pair in fetches else get_default_label(keys[pair[0]]) for pair in pairs
    }
    released = {pair: targets.get((pair[1], labels[pair])) for pair in pairs}
    version_ids = {number for number in released.values() if number}
    version_ids |= {fetch.version_id for fetch in fetches.values()}
    deferred = [name for name in HEAVY_COLUMNS if name != "skill_files"]
    versions = PromptVersion.objects.in_workspace(workspace).using(using).defer(*deferred)
    versions_by_id = versions.in_bulk(version_ids)
    return [
        Bot(
            keys[pair[0]],
            prompts[pair[1]],
            labels[pair],
            versions_by_id.get(released[pair] or 0),
            versions_by_id[fetch.version_id] if (fetch := fetches.get(pair)) else None,
            fetch.at if fetch else None,
            fetch.ledger_id if fetch else None,
            reports.get(pair),
        )
        for pair in pairs
    ]
