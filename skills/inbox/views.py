"""The context inbox: what was found, what changed, what waits for someone."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.records.views import asked
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.responses import back_or, mark_of, unchanged
from skills.files.reasons import GRAVITY, reasons_of, standing_of
from skills.files.selectors import compared, files_of, known_paths, reader_counts, seen_digest
from skills.files.services import adopt_file
from skills.inbox.selectors import (
    Tally,
    Wanted,
    groups_of,
    has_sources,
    inbox_state,
    refusal_words,
    refused_at,
    refusing_runs,
    tally_of,
    waiting_files,
)
from skills.models import ContextFile, FileState, Reach, RefreshRun


def choices(request: WorkspaceRequest, wanted: Wanted, tally: Tally, page: int) -> dict[str, Any]:
    address = reverse("inbox:list", args=[request.workspace.slug])
    return {
        "wanted": wanted,
        "tally": tally,
        "tabs": state_tabs(tally, wanted),
        "sources": source_choices(tally, wanted),
        "is_narrowed": wanted != Wanted(),
        "address": address,
        "back": f"{address}{query(wanted, page=str(page) if page > 1 else '')}",
        "poll": query(wanted, page=str(page)),
    }


def state_tabs(tally: Tally, wanted: Wanted) -> list[dict[str, Any]]:
    choices = [("", _("All"), tally.all_states), *((one, one.label, tally.states[one]) for one in GRAVITY)]
    return [
        {
            "label": label,
            "count": size,
            "is_current": wanted.state == value,
            "query": query(Wanted(value, wanted.source, wanted.words)),
        }
        for value, label, size in choices
    ]


def source_choices(tally: Tally, wanted: Wanted) -> list[dict[str, Any]]:
    """Where there is a choice: the sources with something that waits, and the chosen one."""
    slugs = sorted(tally.labels, key=lambda slug: tally.labels[slug].lower())
    if len(slugs) < 2 and not wanted.source:
        return []
    choices = [("", _("All sources"), tally.all_sources)]
    choices += [(slug, tally.labels[slug], tally.sources[slug]) for slug in slugs]
    return [
        {
            "label": label,
            "count": size,
            "is_current": wanted.source == value,
            "query": query(Wanted(wanted.state, value, wanted.words)),
        }
        for value, label, size in choices
    ]


def query(wanted: Wanted, **more: str) -> str:
    """The part of an address behind the path."""
    said = {"state": wanted.state, "source": wanted.source, "q": wanted.words} | more
    return "?" + urlencode({name: value for name, value in said.items() if value})


PAGE_SIZE = 50
ADOPTABLE = {FileState.NEW, FileState.CHANGED, FileState.MISSING}


@dataclass(frozen=True)
class Row:
    """A line of the inbox."""

    file: ContextFile
    # None: it is handed to every agent.
    readers: int | None
    ticks: frozenset[str] = frozenset()

    @property
    def reasons(self) -> list[str]:
        return reasons_of(self.file)

    @property
    def standing(self) -> str:
        return standing_of(self.file)

    @property
    def digest(self) -> str:
        return seen_digest(self.file)

    @property
    def tick(self) -> str:
        """What the box stands for; short, since every poll says which boxes are ticked."""
        return f"{self.file.pk}:{self.digest[:16]}"

    @property
    def is_ticked(self) -> bool:
        """What has changed since it was ticked comes back unticked."""
        return self.tick in self.ticks

    @property
    def is_comparable(self) -> bool:
        """Whether the newest words stand beside others that are in force or were agreed to."""
        return compared(self.file) is not None

    @property
    def is_adoptable(self) -> bool:
        return self.file.state in ADOPTABLE


class CountedPages(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    """Pages of rows that have been counted already."""

    def __init__(self, rows: QuerySet[ContextFile], total: int) -> None:
        super().__init__(rows, PAGE_SIZE)
        self.total = total

    @cached_property
    def count(self) -> int:
        return self.total


def index(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "skills/inbox/list.html", inbox(request))


def live(request: WorkspaceRequest) -> HttpResponse:
    """The moving part of the page; empty-handed while nothing has changed."""
    workspace = request.workspace
    mark = mark_of(inbox_state(groups_of(workspace), refusal_words(workspace)))
    if answer := unchanged(request, mark):
        return answer
    return render(request, "skills/inbox/_live.html", inbox(request) | {"is_news": True})


@needs(Permission.EDIT)
@require_POST
def adopt(request: WorkspaceRequest) -> HttpResponse:
    """Adopt the ticked files, or all that were shown, each as it was seen; one refusal stops no other."""
    shown = dict(picked(request.POST.getlist("shown")))
    ticks = dict(picked(request.POST.getlist("pick")))
    picks = (
        shown if "everything" in request.POST else {key: whole(ticks[key], shown.get(key)) for key in ticks}
    )
    files = list(files_of(request.workspace).filter(pk__in=picks).order_by("path", "pk"))
    adopted = 0
    for file in files:
        try:
            adopt_file(file, digest=picks[file.pk], by=request.actor)
        except DomainError as error:
            messages.error(request, f"{file.path}: {error.message}")
        else:
            adopted += 1
    if adopted:
        words = ngettext("%(count)s file adopted.", "%(count)s files adopted.", adopted)
        messages.success(request, words % {"count": adopted})
    elif not files:
        messages.error(request, _("Tick the files that you want to adopt."))
    return redirect(back_or(request, reverse("inbox:list", args=[request.workspace.slug])))


def picked(values: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Ids with the digests that were seen; whatever else was sent is no choice."""
    for value in list(values)[:PAGE_SIZE]:
        key, colon, digest = value.partition(":")
        if colon and key.isdecimal() and key.isascii() and len(key) < 16:
            yield int(key), digest


def whole(said: str, shown: str | None) -> str:
    """The digest that a tick is the beginning of."""
    return shown if shown is not None and shown.startswith(said) else said


def inbox(request: WorkspaceRequest) -> dict[str, Any]:
    """All that the page shows, in a fixed number of questions."""
    workspace, wanted = request.workspace, wanted_by(request)
    # First of all, so that whatever comes in between is seen by the next poll.
    groups, runs = groups_of(workspace, wanted.words), list(refusing_runs(workspace))
    mark = mark_of(inbox_state(groups, [(run.source_id, run.words) for run in runs]))
    tally = tally_of(groups, wanted)
    page = CountedPages(waiting_files(workspace, wanted), tally.total).get_page(request.GET.get("page"))
    files, runs = list(page.object_list), [run for run in runs if is_wanted(run, wanted)]
    every, paths = known_paths(workspace, {one.source_id for one in (*files, *runs)})
    counts, ticks = reader_counts(workspace, files, paths), frozenset(request.GET.getlist("pick"))
    return choices(request, wanted, tally, page.number) | {
        "mark": mark,
        "page": page,
        "rows": [Row(file, readers(file, counts[file.pk]), ticks) for file in files],
        "refused": refused_at(runs, every),
        "can_adopt": any(file.state in ADOPTABLE for file in files),
        "has_sources": bool(files) or has_sources(workspace),
    }


def wanted_by(request: WorkspaceRequest) -> Wanted:
    state = request.GET.get("state", "")
    known = state if state in GRAVITY else ""
    return Wanted(known, asked(request, "source")[:100], asked(request, "q").strip()[:200])


def is_wanted(run: RefreshRun, wanted: Wanted) -> bool:
    """Refusals have no state and are no files, so they are shown while neither is asked for."""
    return not wanted.state and not wanted.words and wanted.source in {"", run.source.slug}


def readers(file: ContextFile, found: int) -> int | None:
    if file.file_kind != "skill" or file.reach == Reach.FOUND:
        return found
    return None if file.reach == Reach.ALL else int(getattr(file, "chosen_count", 0))


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("live/", live, name="live"),
    path("adopt/", adopt, name="adopt"),
]
urls = (urlpatterns, "inbox")
