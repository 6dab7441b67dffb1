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
from personas.records.views import get_query_param
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.responses import get_back_url, get_unchanged_response, hash_page_state
from skills.files.reasons import STATES_BY_SEVERITY, describe_usage, list_state_reasons
from skills.files.selectors import (
    count_readers,
    get_compared_revisions,
    get_known_paths,
    get_seen_digest,
    list_context_files,
)
from skills.files.services import approve_file
from skills.inbox.selectors import (
    InboxCounts,
    InboxFilter,
    build_inbox_counts,
    get_inbox_fingerprint,
    has_sources,
    list_inbox_files,
    list_inbox_groups,
    list_refusal_digests,
    list_runs_with_refusals,
    list_source_refusals,
)
from skills.models import ContextFile, FileState, Reach, RefreshRun


def build_filter_context(
    request: WorkspaceRequest, wanted: InboxFilter, tally: InboxCounts, page: int
) -> dict[str, Any]:
    address = reverse("inbox:list", args=[request.workspace.slug])
    return {
        "wanted": wanted,
        "tally": tally,
        "tabs": build_state_tabs(tally, wanted),
        "sources": build_source_choices(tally, wanted),
        "is_narrowed": wanted != InboxFilter(),
        "address": address,
        "back": f"{address}{format_query(wanted, page=str(page) if page > 1 else '')}",
        "poll": format_query(wanted, page=str(page)),
    }


def build_state_tabs(tally: InboxCounts, wanted: InboxFilter) -> list[dict[str, Any]]:
    choices = [
        ("", _("All"), tally.all_states),
        *((one, one.label, tally.states[one]) for one in STATES_BY_SEVERITY),
    ]
    return [
        {
            "label": label,
            "count": size,
            "is_current": wanted.state == value,
            "query": format_query(InboxFilter(value, wanted.source, wanted.words)),
        }
        for value, label, size in choices
    ]


def build_source_choices(tally: InboxCounts, wanted: InboxFilter) -> list[dict[str, Any]]:
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
            "query": format_query(InboxFilter(wanted.state, value, wanted.words)),
        }
        for value, label, size in choices
    ]


def format_query(wanted: InboxFilter, **more: str) -> str:
    """The part of an address behind the path."""
    said = {"state": wanted.state, "source": wanted.source, "q": wanted.words} | more
    return "?" + urlencode({name: value for name, value in said.items() if value})


PAGE_SIZE = 50
APPROVABLE_STATES = {FileState.NEW, FileState.CHANGED, FileState.MISSING}


@dataclass(frozen=True)
class InboxRow:
    """A line of the inbox."""

    file: ContextFile
    # None: it is handed to every agent.
    readers: int | None
    ticks: frozenset[str] = frozenset()

    @property
    def reasons(self) -> list[str]:
        return list_state_reasons(self.file)

    @property
    def standing(self) -> str:
        return describe_usage(self.file)

    @property
    def digest(self) -> str:
        return get_seen_digest(self.file)

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
        return get_compared_revisions(self.file) is not None

    @property
    def is_adoptable(self) -> bool:
        return self.file.state in APPROVABLE_STATES


class CountedPaginator(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    """Pages of rows that have been counted already."""

    def __init__(self, rows: QuerySet[ContextFile], total: int) -> None:
        super().__init__(rows, PAGE_SIZE)
        self.total = total

    @cached_property
    def count(self) -> int:
        return self.total


def index(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "skills/inbox/list.html", build_inbox_page(request))


def poll_inbox(request: WorkspaceRequest) -> HttpResponse:
    """The moving part of the page; empty-handed while nothing has changed."""
    workspace = request.workspace
    mark = hash_page_state(
        get_inbox_fingerprint(list_inbox_groups(workspace), list_refusal_digests(workspace))
    )
    if answer := get_unchanged_response(request, mark):
        return answer
    return render(request, "skills/inbox/_live.html", build_inbox_page(request) | {"is_news": True})


@require_permission(Permission.EDIT)
@require_POST
def approve_selected(request: WorkspaceRequest) -> HttpResponse:
    """Adopt the ticked files, or all that were shown, each as it was seen; one refusal stops no other."""
    shown = dict(parse_picks(request.POST.getlist("shown")))
    ticks = dict(parse_picks(request.POST.getlist("pick")))
    picks = (
        shown
        if "everything" in request.POST
        else {key: expand_digest(ticks[key], shown.get(key)) for key in ticks}
    )
    files = list(list_context_files(request.workspace).filter(pk__in=picks).order_by("path", "pk"))
    adopted = 0
    for file in files:
        try:
            approve_file(file, digest=picks[file.pk], by=request.actor)
        except DomainError as error:
            messages.error(request, f"{file.path}: {error.message}")
        else:
            adopted += 1
    if adopted:
        words = ngettext("%(count)s file adopted.", "%(count)s files adopted.", adopted)
        messages.success(request, words % {"count": adopted})
    elif not files:
        messages.error(request, _("Tick the files that you want to adopt."))
    return redirect(get_back_url(request, reverse("inbox:list", args=[request.workspace.slug])))


def parse_picks(values: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Ids with the digests that were seen; whatever else was sent is no choice."""
    for value in list(values)[:PAGE_SIZE]:
        key, colon, digest = value.partition(":")
        if colon and key.isdecimal() and key.isascii() and len(key) < 16:
            yield int(key), digest


def expand_digest(said: str, shown: str | None) -> str:
    """The digest that a tick is the beginning of."""
    return shown if shown is not None and shown.startswith(said) else said


def build_inbox_page(request: WorkspaceRequest) -> dict[str, Any]:
    """All that the page shows, in a fixed number of questions."""
    workspace, wanted = request.workspace, parse_inbox_filter(request)
    # First of all, so that whatever comes in between is seen by the next poll.
    groups, runs = list_inbox_groups(workspace, wanted.words), list(list_runs_with_refusals(workspace))
    mark = hash_page_state(get_inbox_fingerprint(groups, [(run.source_id, run.words) for run in runs]))
    tally = build_inbox_counts(groups, wanted)
    page = CountedPaginator(list_inbox_files(workspace, wanted), tally.total).get_page(
        request.GET.get("page")
    )
    files, runs = list(page.object_list), [run for run in runs if is_run_shown(run, wanted)]
    every, paths = get_known_paths(workspace, {one.source_id for one in (*files, *runs)})
    counts, ticks = count_readers(workspace, files, paths), frozenset(request.GET.getlist("pick"))
    return build_filter_context(request, wanted, tally, page.number) | {
        "mark": mark,
        "page": page,
        "rows": [InboxRow(file, get_reader_count(file, counts[file.pk]), ticks) for file in files],
        "refused": list_source_refusals(runs, every),
        "can_adopt": any(file.state in APPROVABLE_STATES for file in files),
        "has_sources": bool(files) or has_sources(workspace),
    }


def parse_inbox_filter(request: WorkspaceRequest) -> InboxFilter:
    state = request.GET.get("state", "")
    known = state if state in STATES_BY_SEVERITY else ""
    return InboxFilter(
        known, get_query_param(request, "source")[:100], get_query_param(request, "q").strip()[:200]
    )


def is_run_shown(run: RefreshRun, wanted: InboxFilter) -> bool:
    """Refusals have no state and are no files, so they are shown while neither is asked for."""
    return not wanted.state and not wanted.words and wanted.source in {"", run.source.slug}


def get_reader_count(file: ContextFile, found: int) -> int | None:
    if file.file_kind != "skill" or file.reach == Reach.FOUND:
        return found
    return None if file.reach == Reach.ALL else int(getattr(file, "chosen_count", 0))


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("live/", poll_inbox, name="live"),
    path("adopt/", approve_selected, name="adopt"),
]
urls = (urlpatterns, "inbox")
