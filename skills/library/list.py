"""The list of skills: records and discovered files of a workspace, filtered, sorted and compared by name."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.db.models import BooleanField, Case, CharField, F, IntegerField, Model, Q, QuerySet, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Lower
from django.utils.translation import gettext as _

from core.text.lists import format_short_list
from personas.models import Workspace
from skills.library.duplicates import SKILL_FILE, SKILL_RECORD, SkillKey, SkillUsage, count_skill_usage
from skills.library.selectors import get_folder_name, list_found_skills, list_skills
from skills.models import AssignedTo, ContextFile, FileStatus, Skill, Source
from skills.scanning import mask_secrets

R = TypeVar("R", bound=Model)
USABLE_STATUSES = (FileStatus.NEW, FileStatus.CURRENT, FileStatus.CHANGED)
MATCH_ALL, MATCH_NONE = Q(pk__gt=0), Q(pk__lt=0)

# The condition on discovered skills for each value of the status filter. "" is the default view.
FOUND_SKILL_FILTERS: dict[str, Q] = {
    "": ~Q(status=FileStatus.IGNORED),
    "trusted": Q(status__in=USABLE_STATUSES, active=F("latest")),
    "pending": Q(status__in=USABLE_STATUSES) & ~Q(active=F("latest")),
    "quarantined": Q(status=FileStatus.QUARANTINED),
    "invalid": Q(status=FileStatus.INVALID),
    "missing": Q(status=FileStatus.MISSING),
    "ignored": Q(status=FileStatus.IGNORED),
}
SKILL_RECORD_FILTERS = {
    "": Q(archived_at=None),
    "trusted": Q(archived_at=None),
    "ignored": Q(archived_at__isnull=False),
}


@dataclass(frozen=True)
class SkillFilter:
    """Filters of the skill list. `where`, `status` and `source` are named like their query parameters."""

    search: str = ""
    where: str = ""
    status: str = ""
    source: str = ""

    def build_record_condition(self) -> Q:
        if self.where == "found" or self.source:
            return MATCH_NONE
        condition = SKILL_RECORD_FILTERS.get(self.status, MATCH_NONE)
        return condition & self.build_search_condition("name", "description")

    def build_file_condition(self) -> Q:
        if self.where == "here":
            return MATCH_NONE
        condition = FOUND_SKILL_FILTERS[self.status]
        if self.source:
            condition &= Q(source__slug=self.source)
        return condition & self.build_search_condition(
            "name", "path", "active__head__description", "latest__head__description"
        )

    def build_search_condition(self, *fields: str) -> Q:
        if not self.search:
            return MATCH_ALL
        condition = Q()
        for name in fields:
            condition |= Q(**{f"{name}__icontains": self.search})
        return condition


class SkillEntry(NamedTuple):
    """The columns of a skill record or file that are needed to sort, count and compare names.

    `is_match` tells whether the skill matches the filters. `is_present` is False if the skill is archived,
    ignored, or missing without an active revision.
    """

    sort: str
    kind: int
    pk: int
    name: str
    source_id: int
    path: str
    is_match: bool
    is_present: bool


@dataclass(frozen=True)
class SkillListItem:
    """One row of the skill list: a skill record or a discovered skill file, with its usage."""

    name: str
    skill: Skill | None
    file: ContextFile | None
    usage: SkillUsage
    # Number of skills with this name, including this one.
    namesakes: int

    @property
    def title(self) -> str:
        """The name, or the folder name of a file that could not be parsed."""
        return self.name or (get_folder_name(self.file.path) if self.file else "")

    @property
    def description(self) -> str:
        return self.skill.description if self.skill else get_found_description(self.file)

    @property
    def is_for_all(self) -> bool:
        return (
            self.skill.for_all_agents
            if self.skill
            else bool(self.file and self.file.assigned_to == AssignedTo.ALL)
        )

    @property
    def agent_count(self) -> int:
        # For a skill record, use the agent count annotated by list_skills: load_skill_items counts usage only
        # if there are skill files.
        return self.skill.agent_count if self.skill else self.usage.agent_count  # type: ignore[attr-defined]

    @property
    def validity(self) -> list[str]:
        """Sentences on the agents for which a discovered skill is valid, and on those whose rules drop it."""
        if self.file is None:
            return []
        names = sorted(self.usage.valid_names), sorted(self.usage.dropped_names)
        templates = _("Valid for %(agents)s."), _("Excluded by the rules of %(agents)s.")
        return [
            template % {"agents": format_short_list(agents)}
            for template, agents in zip(templates, names, strict=True)
            if agents
        ]

    @property
    def status(self) -> str:
        if self.file is not None:
            return get_found_status(self.file)
        return "ignored" if self.skill and self.skill.is_archived else "trusted"


def get_found_description(file: ContextFile | None) -> str:
    """Return the skill's description in the active revision, otherwise in the latest revision.

    Secrets in it are masked.
    """
    revision = (file.active or file.latest) if file else None
    return mask_secrets(str(revision.head.get("description", ""))) if revision else ""


def get_found_status(file: ContextFile) -> str:
    """Return the status of a discovered skill as a key of FOUND_SKILL_FILTERS."""
    if file.status not in USABLE_STATUSES:
        return "ignored" if file.status == FileStatus.IGNORED else str(file.status)
    return "trusted" if file.active_id == file.latest_id else "pending"


def list_skill_entries(workspace: Workspace, filters: SkillFilter) -> list[SkillEntry]:
    """Return all skills in list order with one query. `is_match` marks those that match the filters.

    The other skills are included because they may hide a matching skill of the same name.
    """
    records = build_entries_query(
        Skill.objects.in_workspace(workspace),
        filters.build_record_condition(),
        Q(archived_at=None),
        kind=Value(SKILL_RECORD, output_field=IntegerField()),
        display_name=F("name"),
        its_source=Value(0, output_field=IntegerField()),
        its_path=Value("", output_field=CharField()),
    )
    files = build_entries_query(
        ContextFile.objects.in_workspace(workspace).filter(file_kind="skill"),
        filters.build_file_condition(),
        Q(is_ignored=False) & (Q(exists=True) | Q(active__isnull=False)),
        kind=Value(SKILL_FILE, output_field=IntegerField()),
        display_name=Coalesce(KeyTextTransform("name", "active__head"), F("name"), output_field=CharField()),
        its_source=F("source_id"),
        its_path=F("path"),
    )
    rows = records.union(files, all=True).order_by("sort", "kind", "its_path", "pk")
    return [SkillEntry(*row) for row in rows]


def build_entries_query(rows: QuerySet[Any], matching: Q, present: Q, **columns: Any) -> QuerySet[Any]:
    annotated: QuerySet[Any] = rows.annotate(**columns).annotate(
        sort=Lower("display_name"),
        is_match=build_boolean_case(matching),
        is_present=build_boolean_case(present),
    )
    names = ("sort", "kind", "pk", "display_name", "its_source", "its_path", "is_match", "is_present")
    return annotated.order_by().values_list(*names)


def build_boolean_case(condition: Q) -> Case:
    return Case(When(condition, then=Value(True)), default=Value(False), output_field=BooleanField())


def load_skill_items(
    workspace: Workspace, all_entries: Sequence[SkillEntry], entries: Sequence[SkillEntry]
) -> list[SkillListItem]:
    """Load the list items for `entries`, usually one page, with at most six queries.

    `all_entries` must contain all skills of the workspace, to find those with the same names.
    """
    names = {entry.name for entry in entries}
    related = [entry for entry in all_entries if entry.name in names]
    skills = get_rows_by_key(SKILL_RECORD, list_skills(workspace), related)
    files = get_rows_by_key(SKILL_FILE, list_found_skills(workspace), related)
    usage = (
        count_skill_usage(workspace, skills.values(), files.values(), group_paths_by_source(all_entries))
        if files
        else {}
    )
    name_counts = Counter(entry.name for entry in related if entry.is_present and entry.name)
    return [
        SkillListItem(
            entry.name,
            skills.get(entry[1:3]),
            files.get(entry[1:3]),
            usage.get(entry[1:3], SkillUsage()),
            name_counts[entry.name],
        )
        for entry in entries
    ]


def list_namesakes(skill: Skill) -> list[SkillListItem]:
    """Return the other skills that have the same name as this skill, with their usage."""
    all_entries = list_skill_entries(skill.workspace, SkillFilter())
    others = [
        entry
        for entry in all_entries
        if entry.name == skill.name and entry.is_match and entry[1:3] != (SKILL_RECORD, skill.pk)
    ]
    return load_skill_items(skill.workspace, all_entries, others) if others else []


def list_source_choices(workspace: Workspace) -> list[tuple[str, str]]:
    """Return slug and label of every source of the workspace, as options of the source filter."""
    rows = Source.objects.in_workspace(workspace).order_by("name", "pk")
    return list(rows.values_list("slug", "name"))


def get_rows_by_key(kind: int, rows: QuerySet[R], entries: Iterable[SkillEntry]) -> dict[SkillKey, R]:
    ids = [entry.pk for entry in entries if entry.kind == kind]
    return {(kind, row.pk): row for row in rows.filter(pk__in=ids)} if ids else {}


def group_paths_by_source(entries: Iterable[SkillEntry]) -> dict[int, list[str]]:
    """Return the paths of present skill files by source id. "First match" rules need all of them."""
    paths: dict[int, list[str]] = {}
    for entry in entries:
        if entry.kind == SKILL_FILE and entry.is_present:
            paths.setdefault(entry.source_id, []).append(entry.path)
    return paths
