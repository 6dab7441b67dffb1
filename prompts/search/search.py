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
from prompts.search.kinds import GUARDED, KINDS, Kind, Visible
from prompts.versions.timeline import HEAVY

PER_KIND, IN_ALL = 6, 40
# Beyond this nobody reads a line of the palette.
LONGEST = 120
PREFIX, INSIDE, ARCHIVED = 0, 1, 2
COLUMNS = ("found_kind", "found_key", "found_title", "found_about", "found_rank")
NUMBERED = re.compile(r"(?P<who>.*?)\s*(?P<mark>\bv)?(?P<number>\d{1,9})", re.IGNORECASE)
DIGEST = re.compile(r"[0-9a-f]{6,64}")
NOTHING = Value("", TextField())


@dataclass(frozen=True)
class Found:
    """One line of the palette."""

    label: str
    hint: str
    url: str
    icon: str
    group: str | Promise
    rank: int = INSIDE


def found_by(workspace: Workspace, typed: str, sees: Visible) -> list[Found]:
    """The best of each kind, those that begin with the words first; `sees` tells who may look at what."""
    words = typed.split()
    if not words:
        return []
    kinds = [kind for kind in KINDS if kind.name not in GUARDED or sees(GUARDED[kind.name])]
    found = [*records_with(workspace, kinds, typed.strip(), words), *versions_named(workspace, typed.strip())]
    best = sorted(found, key=lambda one: one.rank)[:IN_ALL]
    places = {id(one): place for place, one in enumerate(found)}
    return sorted(best, key=lambda one: places[id(one)])


# --- records -------------------------------------------------------------------------------------------


def records_with(
    workspace: Workspace, kinds: Iterable[Kind], typed: str, words: list[str]
) -> Iterator[Found]:
    """All kinds in one statement: sixteen tables must not be sixteen questions."""
    first, *others = [matching(workspace, kind, typed, words) for kind in kinds]
    rows = list(first.union(*others, all=True))
    for kind in KINDS:
        own = [row for row in rows if row[0] == kind.name]
        for row in sorted(own, key=lambda row: (row[4], row[2].casefold())):
            yield line_of(workspace, kind, row)
    yield from studios(workspace, rows)


def matching(workspace: Workspace, kind: Kind, typed: str, words: list[str]) -> QuerySet[Any]:
    """The few best rows of a kind, in the columns that all kinds share."""
    rows = ranked(kind, kind.rows(workspace), typed)
    best = rows.filter(holding(kind, words)).order_by("found_rank", "found_title", "pk")
    # The limit stands inside, for SQLite takes none on the parts of a union.
    few = rows.filter(pk__in=best.values("pk")[:PER_KIND]).annotate(
        found_kind=Value(kind.name, TextField()), found_key=text_of(kind.key), found_about=text_of(kind.about)
    )
    lines: QuerySet[Any] = few.order_by().values_list(*COLUMNS)
    return lines


def ranked(kind: Kind, rows: QuerySet[Any], typed: str) -> QuerySet[Any]:
    """Those that begin with what was typed come first, the archived last."""
    rows = rows.annotate(found_title=Cast(Left(kind.title, LONGEST), TextField()))
    begins = reduce(or_, [Q(**{f"{name}__istartswith": typed}) for name in searched(kind)])
    ranks = [When(archived_at__isnull=False, then=Value(ARCHIVED))] if kind.is_shelved else []
    rank = Case(*ranks, When(begins, then=Value(PREFIX)), default=Value(INSIDE))
    found: QuerySet[Any] = rows.annotate(found_rank=rank)
    return found


def holding(kind: Kind, words: list[str]) -> Q:
    """Every word must occur somewhere in what is searched."""
    somewhere = [[Q(**{f"{name}__icontains": word}) for name in searched(kind)] for word in words]
    return reduce(and_, [reduce(or_, places) for places in somewhere])


def searched(kind: Kind) -> tuple[str, ...]:
    return ("found_title", *kind.also)


def text_of(field: str) -> Any:
    """Any column as short text, for the parts of a union must agree."""
    return Cast(Left(Cast(field, CharField()), LONGEST), TextField()) if field else NOTHING


def line_of(workspace: Workspace, kind: Kind, row: tuple[str, str, str, str, int]) -> Found:
    _name, key, title, about, rank = row
    place = [workspace.slug, *([key] if kind.key else [])]
    hint = _("Archived") if rank == ARCHIVED else about
    shown = title if len(title) < LONGEST else f"{title[: LONGEST - 1]}…"
    url = reverse(kind.route, args=place)
    return Found(shown, "" if hint == title else hint, url, kind.icon, kind.group, rank)


def studios(workspace: Workspace, rows: Iterable[Any]) -> Iterator[Found]:
    """The way into the editor of each agent that was found."""
    for name, key, title, _about, rank in rows:
        if name != "agents" or rank == ARCHIVED:
            continue
        try:
            url = reverse("studio:show", args=[workspace.slug, key])
        except NoReverseMatch:
            return
        yield Found(_("Open Studio for %(agent)s") % {"agent": title}, "", url, "edit", _("Actions"), rank)


# --- versions ------------------------------------------------------------------------------------------


def versions_named(workspace: Workspace, typed: str) -> Iterator[Found]:
    """By “pilot v12”, by “v12” alone, or by the beginning of a digest."""
    rows = PromptVersion.objects.in_workspace(workspace).select_related("prompt__agent", "prompt__channel")
    rows = rows.defer(*HEAVY)
    said = NUMBERED.fullmatch(typed)
    if DIGEST.fullmatch(typed):
        rows = with_digest(rows, typed)
    elif said and (said["mark"] or said["who"]):
        rows = with_number(rows, said["who"].split(), int(said["number"]))
    else:
        return
    for version in rows[:PER_KIND]:
        yield version_line(workspace, version)


def with_number(rows: QuerySet[PromptVersion], words: list[str], number: int) -> QuerySet[PromptVersion]:
    fields = ("agent__name", "agent__slug", "channel__name", "channel__slug")
    for word in words:
        rows = rows.filter(reduce(or_, [Q(**{f"prompt__{name}__icontains": word}) for name in fields]))
    return rows.filter(number=number).order_by("prompt__agent__name", "prompt__channel__name", "pk")


def with_digest(rows: QuerySet[PromptVersion], begin: str) -> QuerySet[PromptVersion]:
    """As a range, which the index serves; no digit of a digest comes after g."""
    return rows.filter(digest__gte=begin, digest__lt=f"{begin}g").order_by("pk")


def version_line(workspace: Workspace, version: PromptVersion) -> Found:
    url = reverse("versions:detail", args=[workspace.slug, version.prompt_id, version.number])
    return Found(str(version), version.digest[:12], url, "version", _("Versions"), PREFIX)
