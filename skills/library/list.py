"""All skills of a workspace side by side: those written here and those found, as one list."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.db.models import BooleanField, Case, CharField, F, IntegerField, Model, Q, QuerySet, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Lower

from personas.models import Workspace
from skills.library.duplicates import FOUND, WRITTEN, Key, Standing, standings
from skills.library.selectors import folder_of, found_skills_of, skills_of
from skills.models import ContextFile, FileState, Reach, Skill, Source

R = TypeVar("R", bound=Model)
SOUND = (FileState.NEW, FileState.CURRENT, FileState.CHANGED)
EVERYTHING, NOTHING = Q(pk__gt=0), Q(pk__lt=0)

# What may be asked for, in the words of the page; "" is what matters every day.
FOUND_STATES: dict[str, Q] = {
    "": ~Q(state=FileState.IGNORED),
    "trusted": Q(state__in=SOUND, in_force=F("newest")),
    "waiting": Q(state__in=SOUND) & ~Q(in_force=F("newest")),
    "quarantined": Q(state=FileState.QUARANTINED),
    "invalid": Q(state=FileState.INVALID),
    "missing": Q(state=FileState.MISSING),
    "aside": Q(state=FileState.IGNORED),
}
WRITTEN_STATES = {
    "": Q(archived_at=None),
    "trusted": Q(archived_at=None),
    "aside": Q(archived_at__isnull=False),
}


@dataclass(frozen=True)
class Asked:
    """What someone looks for in the list."""

    words: str = ""
    where: str = ""
    state: str = ""
    source: str = ""

    def of_written(self) -> Q:
        if self.where == "found" or self.source:
            return NOTHING
        wanted = WRITTEN_STATES.get(self.state, NOTHING)
        return wanted & self.naming("name", "description")

    def of_found(self) -> Q:
        if self.where == "here":
            return NOTHING
        wanted = FOUND_STATES[self.state]
        if self.source:
            wanted &= Q(source__slug=self.source)
        return wanted & self.naming(
            "name", "path", "in_force__head__description", "newest__head__description"
        )

    def naming(self, *fields: str) -> Q:
        if not self.words:
            return EVERYTHING
        found = Q()
        for name in fields:
            found |= Q(**{f"{name}__icontains": self.words})
        return found


class Entry(NamedTuple):
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
class ListedSkill:
    """A row of the list."""

    name: str
    skill: Skill | None
    file: ContextFile | None
    standing: Standing
    # How many bear this name, itself included.
    namesakes: int

    @property
    def title(self) -> str:
        """A file that could not be read has no name but its folder's."""
        return self.name or (folder_of(self.file.path) if self.file else "")

    @property
    def description(self) -> str:
        return self.skill.description if self.skill else found_description(self.file)

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
            return found_state(self.file)
        return "aside" if self.skill and self.skill.is_archived else "trusted"


def found_description(file: ContextFile | None) -> str:
    """Of what prompts use, else of what lies there."""
    revision = (file.in_force or file.newest) if file else None
    return str(revision.head.get("description", "")) if revision else ""


def found_state(file: ContextFile) -> str:
    """The word of FOUND_STATES for one file."""
    if file.state not in SOUND:
        return "aside" if file.state == FileState.IGNORED else str(file.state)
    return "trusted" if file.in_force_id == file.newest_id else "waiting"


def skill_entries(workspace: Workspace, asked: Asked) -> list[Entry]:
    """Every skill in the order of the list, marked where it was asked for; one query.

    All of them, since one that nobody asked for may bear the same name or stand in another's place.
    """
    here = entries(
        Skill.objects.in_workspace(workspace),
        asked.of_written(),
        Q(archived_at=None),
        kind=Value(WRITTEN, output_field=IntegerField()),
        shown=F("name"),
        its_source=Value(0, output_field=IntegerField()),
        its_path=Value("", output_field=CharField()),
    )
    found = entries(
        ContextFile.objects.in_workspace(workspace).filter(file_kind="skill"),
        asked.of_found(),
        Q(is_ignored=False) & (Q(is_there=True) | Q(in_force__isnull=False)),
        kind=Value(FOUND, output_field=IntegerField()),
        shown=Coalesce(KeyTextTransform("name", "in_force__head"), F("name"), output_field=CharField()),
        its_source=F("source_id"),
        its_path=F("path"),
    )
    rows = here.union(found, all=True).order_by("sort", "kind", "its_path", "pk")
    return [Entry(*row) for row in rows]


def entries(rows: QuerySet[Any], asked: Q, there: Q, **columns: Any) -> QuerySet[Any]:
    marked: QuerySet[Any] = rows.annotate(**columns).annotate(
        sort=Lower("shown"), is_asked=truth(asked), is_present=truth(there)
    )
    names = ("sort", "kind", "pk", "shown", "its_source", "its_path", "is_asked", "is_present")
    return marked.order_by().values_list(*names)


def truth(condition: Q) -> Case:
    return Case(When(condition, then=Value(True)), default=Value(False), output_field=BooleanField())


def listed_skills(
    workspace: Workspace, everything: Sequence[Entry], shown: Sequence[Entry]
) -> list[ListedSkill]:
    """The rows of one page; at most six queries, however many there are."""
    names = {entry.name for entry in shown}
    related = [entry for entry in everything if entry.name in names]
    skills = by_key(WRITTEN, skills_of(workspace), related)
    files = by_key(FOUND, found_skills_of(workspace), related)
    standing = standings(workspace, skills.values(), files.values(), paths_in(everything)) if files else {}
    bearers = Counter(entry.name for entry in related if entry.is_there and entry.name)
    return [
        ListedSkill(
            entry.name,
            skills.get(entry[1:3]),
            files.get(entry[1:3]),
            standing.get(entry[1:3], Standing()),
            bearers[entry.name],
        )
        for entry in shown
    ]


def namesakes_of(skill: Skill) -> list[ListedSkill]:
    """The others of this name, and what becomes of each."""
    everything = skill_entries(skill.workspace, Asked())
    others = [
        entry
        for entry in everything
        if entry.name == skill.name and entry.is_asked and entry[1:3] != (WRITTEN, skill.pk)
    ]
    return listed_skills(skill.workspace, everything, others) if others else []


def source_choices(workspace: Workspace) -> list[tuple[str, str]]:
    """Address and label of every source, for a filter."""
    rows = Source.objects.in_workspace(workspace).order_by("label", "pk")
    return list(rows.values_list("slug", "label"))


def by_key(kind: int, rows: QuerySet[R], entries: Iterable[Entry]) -> dict[Key, R]:
    wanted = [entry.pk for entry in entries if entry.kind == kind]
    return {(kind, row.pk): row for row in rows.filter(pk__in=wanted)} if wanted else {}


def paths_in(entries: Iterable[Entry]) -> dict[int, list[str]]:
    """What each source holds of skills, for rules by which only the first place counts."""
    paths: dict[int, list[str]] = {}
    for entry in entries:
        if entry.kind == FOUND and entry.is_there:
            paths.setdefault(entry.source_id, []).append(entry.path)
    return paths
