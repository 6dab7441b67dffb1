"""Where a typed word may lead: records, files, versions, releases and people of one workspace."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import CharField, Q, QuerySet, TextField, Value
from django.db.models.expressions import Case, When
from django.db.models.functions import Cast, Left
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from personas.models import Workspace
from prompts.models import PromptVersion
from prompts.search.kinds import KIND_PERMISSIONS, SEARCH_KINDS, PermissionTest, SearchKind
from prompts.versions.timeline import HEAVY_COLUMNS

MAX_PER_KIND, MAX_RESULTS = 6, 40
# Beyond this nobody reads a line of the palette.
MAX_TITLE_LENGTH = 120
RANK_PREFIX, RANK_INSIDE, RANK_ARCHIVED = 0, 1, 2
RESULT_COLUMNS = ("found_kind", "found_key", "found_title", "found_about", "found_rank")
VERSION_PATTERN = re.compile(r"(?P<who>.*?)\s*(?P<mark>\bv)?(?P<number>\d{1,9})", re.IGNORECASE)
DIGEST_PATTERN = re.compile(r"[0-9a-f]{6,64}")
EMPTY_COLUMN = Value("", TextField())


@dataclass(frozen=True)
class SearchResult:
    """One line of the palette."""

    label: str
    hint: str
    url: str
    icon: str
    group: str | Promise
    rank: int = RANK_INSIDE


def search_workspace(workspace: Workspace, typed: str, sees: PermissionTest) -> list[SearchResult]:
    """The best of each kind, those that begin with the words first; `sees` tells who may look at what."""
    words = typed.split()
    if not words:
        return []
    kinds = [
        kind
        for kind in SEARCH_KINDS
        if kind.name not in KIND_PERMISSIONS or sees(KIND_PERMISSIONS[kind.name])
    ]
    found = [
        *search_records(workspace, kinds, typed.strip(), words),
        *search_versions(workspace, typed.strip()),
    ]
    best = sorted(found, key=lambda one: one.rank)[:MAX_RESULTS]
    places = {id(one): place for place, one in enumerate(found)}
    return sorted(best, key=lambda one: places[id(one)])


# --- records -------------------------------------------------------------------------------------------


def search_records(
    workspace: Workspace, kinds: Iterable[SearchKind], typed: str, words: list[str]
) -> Iterator[SearchResult]:
    """All kinds in one statement: sixteen tables must not be sixteen questions."""
    first, *others = [query_search_kind(workspace, kind, typed, words) for kind in kinds]
    rows = list(first.union(*others, all=True))
    for kind in SEARCH_KINDS:
        own = [row for row in rows if row[0] == kind.name]
        for row in sorted(own, key=lambda row: (row[4], row[2].casefold())):
            yield build_record_result(workspace, kind, row)
    yield from list_studio_results(workspace, rows)


def query_search_kind(workspace: Workspace, kind: SearchKind, typed: str, words: list[str]) -> QuerySet[Any]:
    """The few best rows of a kind, in the columns that all kinds share."""
    rows = rank_search_rows(kind, kind.rows(workspace), typed)
    best = rows.filter(build_words_condition(kind, words)).order_by("found_rank", "found_title", "pk")
    # The limit stands inside, for SQLite takes none on the parts of a union.
    few = rows.filter(pk__in=best.values("pk")[:MAX_PER_KIND]).annotate(
        found_kind=Value(kind.name, TextField()),
        found_key=build_text_column(kind.key),
        found_about=build_text_column(kind.about),
    )
    lines: QuerySet[Any] = few.order_by().values_list(*RESULT_COLUMNS)
    return lines


def rank_search_rows(kind: SearchKind, rows: QuerySet[Any], typed: str) -> QuerySet[Any]:
    """Those that begin with what was typed come first, the archived last."""
    rows = rows.annotate(found_title=Cast(Left(kind.title, MAX_TITLE_LENGTH), TextField()))
    begins = reduce(or_, [Q(**{f"{name}__istartswith": typed}) for name in list_searched_fields(kind)])
    ranks = [When(archived_at__isnull=False, then=Value(RANK_ARCHIVED))] if kind.is_shelved else []
    rank = Case(*ranks, When(begins, then=Value(RANK_PREFIX)), default=Value(RANK_INSIDE))
    found: QuerySet[Any] = rows.annotate(found_rank=rank)
    return found


def build_words_condition(kind: SearchKind, words: list[str]) -> Q:
    """Every word must occur somewhere in what is searched."""
    somewhere = [[Q(**{f"{name}__icontains": word}) for name in list_searched_fields(kind)] for word in words]
    return reduce(and_, [reduce(or_, places) for places in somewhere])


def list_searched_fields(kind: SearchKind) -> tuple[str, ...]:
    return ("found_title", *kind.also)


def build_text_column(field: str) -> Any:
    """Any column as short text, for the parts of a union must agree."""
    return Cast(Left(Cast(field, CharField()), MAX_TITLE_LENGTH), TextField()) if field else EMPTY_COLUMN


def build_record_result(
    workspace: Workspace, kind: SearchKind, row: tuple[str, str, str, str, int]
) -> SearchResult:
    _name, key, title, about, rank = row
    place = [workspace.slug, *([key] if kind.key else [])]
    hint = _("Archived") if rank == RANK_ARCHIVED else about
    shown = title if len(title) < MAX_TITLE_LENGTH else f"{title[: MAX_TITLE_LENGTH - 1]}…"
    url = reverse(kind.route, args=place)
    return SearchResult(shown, "" if hint == title else hint, url, kind.icon, kind.group, rank)


def list_studio_results(workspace: Workspace, rows: Iterable[Any]) -> Iterator[SearchResult]:
    """The way into the editor of each agent that was found."""
    for name, key, title, _about, rank in rows:
        if name != "agents" or rank == RANK_ARCHIVED:
            continue
        try:
            url = reverse("studio:show", args=[workspace.slug, key])
        except NoReverseMatch:
            return
        yield SearchResult(
            _("Open Studio for %(agent)s") % {"agent": title}, "", url, "edit", _("Actions"), rank
        )


# --- versions ------------------------------------------------------------------------------------------


def search_versions(workspace: Workspace, typed: str) -> Iterator[SearchResult]:
    """By “pilot v12”, by “v12” alone, or by the beginning of a digest."""
    rows = PromptVersion.objects.in_workspace(workspace).select_related("prompt__agent", "prompt__channel")
    rows = rows.defer(*HEAVY_COLUMNS)
    said = VERSION_PATTERN.fullmatch(typed)
    if DIGEST_PATTERN.fullmatch(typed):
        rows = filter_by_digest(rows, typed)
    elif said and (said["mark"] or said["who"]):
        rows = filter_by_number(rows, said["who"].split(), int(said["number"]))
    else:
        return
    for version in rows[:MAX_PER_KIND]:
        yield build_version_result(workspace, version)


def filter_by_number(rows: QuerySet[PromptVersion], words: list[str], number: int) -> QuerySet[PromptVersion]:
    fields = ("agent__name", "agent__slug", "channel__name", "channel__slug")
    for word in words:
        rows = rows.filter(reduce(or_, [Q(**{f"prompt__{name}__icontains": word}) for name in fields]))
    return rows.filter(number=number).order_by("prompt__agent__name", "prompt__channel__name", "pk")


def filter_by_digest(rows: QuerySet[PromptVersion], begin: str) -> QuerySet[PromptVersion]:
    """As a range, which the index serves; no digit of a digest comes after g."""
    return rows.filter(digest__gte=begin, digest__lt=f"{begin}g").order_by("pk")


def build_version_result(workspace: Workspace, version: PromptVersion) -> SearchResult:
    url = reverse("versions:detail", args=[workspace.slug, version.prompt_id, version.number])
    return SearchResult(str(version), version.digest[:12], url, "version", _("Versions"), RANK_PREFIX)
