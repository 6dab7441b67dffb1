"""Search records, files, versions, releases and members of one workspace for the command palette."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import and_, or_
from typing import Any
from urllib.parse import urlencode

from django.db.models import CharField, F, Q, QuerySet, TextField, Value
from django.db.models.expressions import Case, When
from django.db.models.functions import Cast, Left
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from core.db.fast import CompiledQuery
from core.text.shorten import shorten_text
from personas.erasure.services import ERASED_TEXT
from personas.models import Workspace
from prompts.models import PromptVersion
from prompts.publishing.versions.timeline import HEAVY_COLUMNS
from prompts.studio.search.kinds import KIND_PERMISSIONS, SEARCH_KINDS, PermissionTest, SearchKind

MAX_PER_KIND, MAX_RESULTS = 6, 40
# Longer titles are truncated in the palette.
MAX_TITLE_LENGTH = 120
RANK_PREFIX, RANK_INSIDE, RANK_TEXT, RANK_ARCHIVED = 0, 1, 2, 3
RESULT_COLUMNS = ("result_kind", "result_key", "result_title", "result_about", "result_rank")
VERSION_PATTERN = re.compile(r"(?P<name>.*?)\s*(?P<mark>\bv)?(?P<number>\d{1,9})", re.IGNORECASE)
DIGEST_PATTERN = re.compile(r"[0-9a-f]{6,64}")
VERSION_KIND = "versions"
EMPTY_COLUMN = Value("", TextField())


@dataclass(frozen=True)
class SearchResult:
    """One entry of the command palette."""

    label: str
    hint: str
    url: str
    icon: str
    group: str | Promise
    rank: int = RANK_INSIDE
    # Name of the search kind, or `versions`, and what identifies the row in URLs; empty for an action.
    kind: str = ""
    key: str = ""


def search_workspace(workspace: Workspace, query: str, is_allowed: PermissionTest) -> list[SearchResult]:
    """Return the best matches of each kind, prefix matches first; `is_allowed` checks a permission."""
    terms = query.split()
    if not terms:
        return []
    kinds = [
        kind
        for kind in SEARCH_KINDS
        if kind.name not in KIND_PERMISSIONS or is_allowed(KIND_PERMISSIONS[kind.name])
    ]
    results = [
        *search_records(workspace, kinds, query.strip(), terms),
        *search_versions(workspace, query.strip()),
    ]
    best = sorted(results, key=lambda one: one.rank)[:MAX_RESULTS]
    positions = {id(result): position for position, result in enumerate(results)}
    return sorted(best, key=lambda one: positions[id(one)])


# --- records -------------------------------------------------------------------------------------------


def search_records(
    workspace: Workspace, kinds: Iterable[SearchKind], query: str, terms: list[str]
) -> Iterator[SearchResult]:
    """Search all kinds with one UNION query."""
    rows = get_search_query(tuple(kinds))(workspace.pk, query, terms)
    for kind in SEARCH_KINDS:
        kind_rows = [row for row in rows if row[0] == kind.name]
        for row in sorted(kind_rows, key=lambda row: (row[4], row[2].casefold())):
            yield build_record_result(workspace, kind, row)
        if len(kind_rows) == MAX_PER_KIND and kind.list_route:
            yield build_list_result(workspace, kind, query)
    yield from list_studio_results(workspace, rows)


@cache
def get_search_query(kinds: tuple[SearchKind, ...]) -> CompiledQuery[[int, str, list[str]], Any]:
    """Return the UNION query over these kinds.

    Compiled: Django takes 70 ms to build it, longer than all the rest of a palette search.
    """

    def build(workspace: int, query: str, terms: list[str]) -> QuerySet[Any]:
        first, *others = [query_search_kind(workspace, kind, query, terms) for kind in kinds]
        return first.union(*others, all=True)

    return CompiledQuery(build)


def query_search_kind(workspace: int, kind: SearchKind, query: str, terms: list[str]) -> QuerySet[Any]:
    """Build the query for the best rows of a kind, with the columns that all kinds share."""
    rows = rank_search_rows(kind, kind.list_rows(workspace), query, terms)
    best = (
        rows.filter(build_terms_condition((*list_searched_fields(kind), *kind.text_fields), terms))
        .exclude(result_title=ERASED_TEXT)
        .order_by("result_rank", "result_title", "pk")
    )
    # The limit is in a subquery: SQLite does not allow LIMIT in the parts of a UNION.
    limited = rows.filter(pk__in=best.values("pk")[:MAX_PER_KIND]).annotate(
        result_kind=Value(kind.name, TextField()),
        result_key=build_text_column(kind.key),
        result_about=build_text_column(kind.about),
    )
    values: QuerySet[Any] = limited.order_by().values_list(*RESULT_COLUMNS)
    return values


def rank_search_rows(kind: SearchKind, rows: QuerySet[Any], query: str, terms: list[str]) -> QuerySet[Any]:
    """Annotate the rank: prefix matches first, then other titles, then long texts, archived rows last."""
    rows = rows.annotate(result_title=Cast(Left(kind.title, MAX_TITLE_LENGTH), TextField()))
    has_prefix = reduce(or_, [Q(**{f"{name}__istartswith": query}) for name in list_searched_fields(kind)])
    ranks = [When(archived_at__isnull=False, then=Value(RANK_ARCHIVED))] if kind.has_archive else []
    ranks.append(When(has_prefix, then=Value(RANK_PREFIX)))
    if kind.text_fields:
        in_titles = build_terms_condition(list_searched_fields(kind), terms)
        rank = Case(*ranks, When(in_titles, then=Value(RANK_INSIDE)), default=Value(RANK_TEXT))
    else:
        rank = Case(*ranks, default=Value(RANK_INSIDE))
    ranked: QuerySet[Any] = rows.annotate(result_rank=rank)
    return ranked


def build_terms_condition(fields: Sequence[str], terms: list[str]) -> Q:
    """Require that every term occurs in at least one of the fields."""
    conditions = [[Q(**{f"{name}__icontains": term}) for name in fields] for term in terms]
    return reduce(and_, [reduce(or_, alternatives) for alternatives in conditions])


def list_searched_fields(kind: SearchKind) -> tuple[str, ...]:
    """List what is searched. A title that is the beginning of a searched field needs no search of its own."""
    is_searched = isinstance(kind.title, F) and kind.title in [F(name) for name in kind.extra_fields]
    return kind.extra_fields if is_searched else ("result_title", *kind.extra_fields)


def build_text_column(field: str) -> Any:
    """Cast a column to short text: the parts of a UNION must have the same types."""
    return Cast(Left(Cast(field, CharField()), MAX_TITLE_LENGTH), TextField()) if field else EMPTY_COLUMN


def build_record_result(
    workspace: Workspace, kind: SearchKind, row: tuple[str, str, str, str, int]
) -> SearchResult:
    _name, key, title, about, rank = row
    args = [workspace.slug, *([key] if kind.key else [])]
    hint = _("Archived") if rank == RANK_ARCHIVED else _("found in the text") if rank == RANK_TEXT else about
    # The query cuts titles to MAX_TITLE_LENGTH, so a title of that length may have been longer.
    label = title if len(title) < MAX_TITLE_LENGTH else shorten_text(f"{title}…", MAX_TITLE_LENGTH)
    url = reverse(kind.route, args=args)
    return SearchResult(
        label, "" if hint == title else hint, url, kind.icon, kind.group, rank, kind.name, key
    )


def build_list_result(workspace: Workspace, kind: SearchKind, query: str) -> SearchResult:
    """Build a result that opens the list of a kind with the same search, if not all matches are shown."""
    url = f"{reverse(kind.list_route, args=[workspace.slug])}?{urlencode({'q': query})}"
    return SearchResult(
        _("All matches in %(kind)s") % {"kind": kind.group}, "", url, "search", kind.group, RANK_INSIDE
    )


def list_studio_results(workspace: Workspace, rows: Iterable[Any]) -> Iterator[SearchResult]:
    """Build a result that opens the Studio for each agent in the rows."""
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


def search_versions(workspace: Workspace, query: str) -> Iterator[SearchResult]:
    """Find versions by name and number (“pilot v12”), by number (“v12”), or by the prefix of a digest."""
    rows = PromptVersion.objects.in_workspace(workspace).select_related("prompt__agent", "prompt__channel")
    rows = rows.defer(*HEAVY_COLUMNS)
    match = VERSION_PATTERN.fullmatch(query)
    if DIGEST_PATTERN.fullmatch(query):
        rows = filter_by_digest(rows, query)
    elif match and (match["mark"] or match["name"]):
        rows = filter_by_number(rows, match["name"].split(), int(match["number"]))
    else:
        return
    for version in rows[:MAX_PER_KIND]:
        yield build_version_result(workspace, version)


def filter_by_number(rows: QuerySet[PromptVersion], terms: list[str], number: int) -> QuerySet[PromptVersion]:
    fields = ("agent__name", "agent__slug", "channel__name", "channel__slug")
    for term in terms:
        rows = rows.filter(reduce(or_, [Q(**{f"prompt__{name}__icontains": term}) for name in fields]))
    return rows.filter(number=number).order_by("prompt__agent__name", "prompt__channel__name", "pk")


def filter_by_digest(rows: QuerySet[PromptVersion], prefix: str) -> QuerySet[PromptVersion]:
    """Match a digest prefix as a range, which can use the index: every hex digit sorts before "g"."""
    return rows.filter(digest__gte=prefix, digest__lt=f"{prefix}g").order_by("pk")


def build_version_result(workspace: Workspace, version: PromptVersion) -> SearchResult:
    url = reverse("versions:detail", args=[workspace.slug, version.prompt_id, version.number])
    return SearchResult(
        str(version),
        version.digest[:12],
        url,
        "version",
        _("Versions"),
        RANK_PREFIX,
        VERSION_KIND,
        version.digest,
    )
