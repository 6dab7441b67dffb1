"""All skills of a workspace side by side: those written here and those found, as one list."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.db.models import BooleanField, Case, CharField, F, IntegerField, Model, Q, QuerySet, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Lower

from personas.models import Workspace
from skills.library.duplicates import SKILL_FILE, SKILL_RECORD, SkillKey, SkillUsage, count_skill_usage
from skills.library.selectors import get_folder_name, list_found_skills, list_skills
from skills.models import ContextFile, FileState, Reach, Skill, Source

R = TypeVar("R", bound=Model)
USABLE_STATES = (FileState.NEW, FileState.CURRENT, FileState.CHANGED)
MATCH_ALL, MATCH_NONE = Q(pk__gt=0), Q(pk__lt=0)

# What may be asked for, in the words of the page; "" is what matters every day.
FOUND_SKILL_FILTERS: dict[str, Q] = {
    "": ~Q(state=FileState.IGNORED),
    "trusted": Q(state__in=USABLE_STATES, in_force=F("newest")),
    "waiting": Q(state__in=USABLE_STATES) & ~Q(in_force=F("newest")),
    "quarantined": Q(state=FileState.QUARANTINED),
    "invalid": Q(state=FileState.INVALID),
    "missing": Q(state=FileState.MISSING),
    "aside": Q(state=FileState.IGNORED),
}
SKILL_RECORD_FILTERS = {
    "": Q(archived_at=None),
    "trusted": Q(archived_at=None),
    "aside": Q(archived_at__isnull=False),
}


@dataclass(frozen=True)
class SkillFilter:
    """What someone looks for in the list."""

    words: str = ""
    where: str = ""
    state: str = ""
    source: str = ""

    def of_written(self) -> Q:
        if self.where == "found" or self.source:
            return MATCH_NONE
        wanted = SKILL_RECORD_FILTERS.get(self.state, MATCH_NONE)
        return wanted & self.naming("name", "description")

    def of_found(self) -> Q:
        if self.where == "here":
            return MATCH_NONE
        wanted = FOUND_SKILL_FILTERS[self.state]
        if self.source:
            wanted &= Q(source__slug=self.source)
        return wanted & self.naming(
            "name", "path", "in_force__head__description", "newest__head__description"
        )

    def naming(self, *fields: str) -> Q:
        if not self.words:
            return MATCH_ALL
        found = Q()
        for name in fields:
            found |= Q(**{f"{name}__icontains": self.words})
        return found


class SkillEntry(NamedTuple):
    """A skill as far as the list must know it to sort, count and compare."""

    sort: str
    kind: int
    pk: int
    name: str
    source_id: int
    path: str
    is_asked: bool
    is_there: bool


@dataclass(frozen=True)
class SkillListItem:
    """A row of the list."""

    name: str
    skill: Skill | None
    file: ContextFile | None
    standing: SkillUsage
    # How many bear this name, itself included.
    namesakes: int

    @property
    def title(self) -> str:
        """A file that could not be read has no name but its folder's."""
        return self.name or (get_folder_name(self.file.path) if self.file else "")

    @property
    def description(self) -> str:
        return self.skill.description if self.skill else get_found_description(self.file)

    @property
    def is_for_all(self) -> bool:
        return self.skill.for_all_agents if self.skill else bool(self.file and self.file.reach == Reach.ALL)

    @property
    def agent_count(self) -> int:
        # Counted with the row, whether or not anyone had to be compared.
        return self.skill.agent_count if self.skill else self.standing.holders  # type: ignore[attr-defined]

    @property
    def state(self) -> str:
        if self.file is not None:
            return get_found_state(self.file)
        return "aside" if self.skill and self.skill.is_archived else "trusted"


def get_found_description(file: ContextFile | None) -> str:
    """Of what prompts use, else of what lies there."""
    revision = (file.in_force or file.newest) if file else None
    return str(revision.head.get("description", "")) if revision else ""


def get_found_state(file: ContextFile) -> str:
    """The word of FOUND_STATES for one file."""
    if file.state not in USABLE_STATES:
        return "aside" if file.state == FileState.IGNORED else str(file.state)
    return "trusted" if file.in_force_id == file.newest_id else "waiting"


def list_skill_entries(workspace: Workspace, asked: SkillFilter) -> list[SkillEntry]:
    """Every skill in the order of the list, marked where it was asked for; one query.

    All of them, since one that nobody asked for may bear the same name or stand in another's place.
    """
    here = build_entries_query(
        Skill.objects.in_workspace(workspace),
        asked.of_written(),
        Q(archived_at=None),
        kind=Value(SKILL_RECORD, output_field=IntegerField()),
        shown=F("name"),
        its_source=Value(0, output_field=IntegerField()),
        its_path=Value("", output_field=CharField()),
    )
    found = build_entries_query(
        ContextFile.objects.in_workspace(workspace).filter(file_kind="skill"),
        asked.of_found(),
        Q(is_ignored=False) & (Q(is_there=True) | Q(in_force__isnull=False)),
        kind=Value(SKILL_FILE, output_field=IntegerField()),
        shown=Coalesce(KeyTextTransform("name", "in_force__head"), F("name"), output_field=CharField()),
        its_source=F("source_id"),
        its_path=F("path"),
    )
    rows = here.union(found, all=True).order_by("sort", "kind", "its_path", "pk")
    return [SkillEntry(*row) for row in rows]


def build_entries_query(rows: QuerySet[Any], asked: Q, there: Q, **columns: Any) -> QuerySet[Any]:
    marked: QuerySet[Any] = rows.annotate(**columns).annotate(
        sort=Lower("shown"), is_asked=build_boolean_case(asked), is_present=build_boolean_case(there)
    )
    names = ("sort", "kind", "pk", "shown", "its_source", "its_path", "is_asked", "is_present")
    return marked.order_by().values_list(*names)


def build_boolean_case(condition: Q) -> Case:
    return Case(When(condition, then=Value(True)), default=Value(False), output_field=BooleanField())


def load_skill_items(
    workspace: Workspace, everything: Sequence[SkillEntry], shown: Sequence[SkillEntry]
) -> list[SkillListItem]:
    """The rows of one page; at most six queries, however many there are."""
    names = {entry.name for entry in shown}
    related = [entry for entry in everything if entry.name in names]
    skills = get_rows_by_key(SKILL_RECORD, list_skills(workspace), related)
    files = get_rows_by_key(SKILL_FILE, list_found_skills(workspace), related)
    standing = (
        count_skill_usage(workspace, skills.values(), files.values(), group_paths_by_source(everything))
        if files
        else {}
    )
    bearers = Counter(entry.name for entry in related if entry.is_there and entry.name)
    return [
        SkillListItem(
            entry.name,
            skills.get(entry[1:3]),
            files.get(entry[1:3]),
            standing.get(entry[1:3], SkillUsage()),
            bearers[entry.name],
        )
        for entry in shown
    ]


def list_namesakes(skill: Skill) -> list[SkillListItem]:
    """The others of this name, and what becomes of each."""
    everything = list_skill_entries(skill.workspace, SkillFilter())
    others = [
        entry
        for entry in everything
        if entry.name == skill.name and entry.is_asked and entry[1:3] != (SKILL_RECORD, skill.pk)
    ]
    return load_skill_items(skill.workspace, everything, others) if others else []


def list_source_choices(workspace: Workspace) -> list[tuple[str, str]]:
    """Address and label of every source, for a filter."""
    rows = Source.objects.in_workspace(workspace).order_by("label", "pk")
    return list(rows.values_list("slug", "label"))


def get_rows_by_key(kind: int, rows: QuerySet[R], entries: Iterable[SkillEntry]) -> dict[SkillKey, R]:
    wanted = [entry.pk for entry in entries if entry.kind == kind]
    return {(kind, row.pk): row for row in rows.filter(pk__in=wanted)} if wanted else {}


def group_paths_by_source(entries: Iterable[SkillEntry]) -> dict[int, list[str]]:
    """What each source holds of skills, for rules by which only the first place counts."""
    paths: dict[int, list[str]] = {}
    for entry in entries:
        if entry.kind == SKILL_FILE and entry.is_there:
            paths.setdefault(entry.source_id, []).append(entry.path)
    return paths
