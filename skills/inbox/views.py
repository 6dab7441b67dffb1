"""The context inbox: new, changed, missing and refused files that need a decision."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.records.views import get_query_param
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.counted_paginator import CountedPaginator
from personas.ui.responses import get_back_url, get_unchanged_response, hash_page_state
from personas.ui.review import Reviewed
from skills.agent_context.skill_validity import SkillReaders, SkillValidity
from skills.files.prompt_usage import describe_usages, get_prompt_usage_fingerprint
from skills.files.reasons import STATUSES_BY_SEVERITY, list_status_reasons
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
from skills.models import AssignedTo, ContextFile, FileStatus, RefreshRun
from skills.sources.readers import get_readers_by_agent
from skills.sources.selectors import list_source_holds


def build_filter_context(
    request: WorkspaceRequest, filters: InboxFilter, counts: InboxCounts, page: int
) -> dict[str, Any]:
    list_url = reverse("inbox:list", args=[request.workspace.slug])
    return {
        "filters": filters,
        "counts": counts,
        "tabs": build_status_tabs(counts, filters),
        "sources": build_source_choices(counts, filters),
        "is_narrowed": filters != InboxFilter(),
        "address": list_url,
        "back": f"{list_url}{format_query(filters, page=str(page) if page > 1 else '')}",
        "poll": format_query(filters, page=str(page)),
    }


def build_status_tabs(counts: InboxCounts, filters: InboxFilter) -> list[dict[str, Any]]:
    choices = [
        ("", _("All"), counts.all_statuses),
        *((status, status.label, counts.statuses[status]) for status in STATUSES_BY_SEVERITY),
    ]
    return [
        {
            "label": label,
            "count": size,
            "is_current": filters.status == value,
            "query": format_query(InboxFilter(value, filters.source, filters.search)),
        }
        for value, label, size in choices
    ]


def build_source_choices(counts: InboxCounts, filters: InboxFilter) -> list[dict[str, Any]]:
    """Return the options of the source filter: the sources with pending files.

    With fewer than two sources there are no options, unless the filter is already set.
    """
    slugs = sorted(counts.names, key=lambda slug: counts.names[slug].lower())
    if len(slugs) < 2 and not filters.source:
        return []
    choices = [("", _("All sources"), counts.all_sources)]
    choices += [(slug, counts.names[slug], counts.sources[slug]) for slug in slugs]
    return [
        {
            "name": name,
            "count": size,
            "is_current": filters.source == value,
            "query": format_query(InboxFilter(filters.status, value, filters.search)),
        }
        for value, name, size in choices
    ]


def format_query(filters: InboxFilter, **more: str) -> str:
    """Format the filters as a query string that starts with a question mark."""
    params = {"status": filters.status, "source": filters.source, "q": filters.search} | more
    return "?" + urlencode({name: value for name, value in params.items() if value})


PAGE_SIZE = 50
APPROVABLE_STATUSES = {FileStatus.NEW, FileStatus.CHANGED, FileStatus.MISSING}


@dataclass(frozen=True)
class InboxRow:
    """A pending file as a row of the inbox."""

    file: ContextFile
    # Number of agents that read the file; None if it is assigned to all agents.
    reader_count: int | None
    # Which revision prompts contain now.
    usage: str
    checked_values: frozenset[str] = frozenset()
    # For a skill: the agents for which its latest revision is valid.
    validity: SkillValidity | None = None

    @property
    def reasons(self) -> list[str]:
        return list_status_reasons(self.file)

    @property
    def reader_label(self) -> str:
        if self.reader_count is None:
            return _("read by all agents")
        if not self.reader_count:
            return _("not read by any agent")
        text = ngettext("read by %(n)s agent", "read by %(n)s agents", self.reader_count)
        return text % {"n": self.reader_count}

    @property
    def digest(self) -> str:
        return get_seen_digest(self.file)

    @property
    def checkbox_value(self) -> str:
        """Value of the row's checkbox: the file's id and the start of its digest.

        The digest is shortened because every poll sends the values of all checked boxes.
        """
        return f"{self.file.pk}:{self.digest[:16]}"

    @property
    def is_checked(self) -> bool:
        """Whether the checkbox stays checked after a poll. It does not if the file has changed."""
        return self.checkbox_value in self.checked_values

    @property
    def is_comparable(self) -> bool:
        """Whether there is a diff to show: an earlier used or approved revision with other content."""
        return get_compared_revisions(self.file) is not None

    @property
    def is_approvable(self) -> bool:
        return self.file.status in APPROVABLE_STATUSES


def index(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "skills/inbox/list.html", build_inbox_page(request))


def poll_inbox(request: WorkspaceRequest) -> HttpResponse:
    """Render the polled part of the page, or answer 204 if nothing has changed since the last poll."""
    workspace = request.workspace
    mark = hash_page_state(
        get_inbox_fingerprint(
            list_inbox_groups(workspace), list_refusal_digests(workspace), list_source_holds(workspace)
        ),
        get_prompt_usage_fingerprint(workspace),
    )
    if response := get_unchanged_response(request, mark):
        return response
    return render(request, "skills/inbox/_live.html", build_inbox_page(request) | {"is_news": True})


@require_permission(Permission.EDIT, Reviewed(gettext_lazy("Approve")))
@require_POST
def approve_selected(request: WorkspaceRequest) -> HttpResponse:
    """Approve the checked files or, with the button for all, every file of the page.

    The form contains the digest of each file that the user saw; a file with another digest by now is not
    approved. A file that cannot be approved does not stop the others.
    """
    shown_digests = dict(parse_picks(request.POST.getlist("shown")))
    checked_digests = dict(parse_picks(request.POST.getlist("pick")))
    picks = (
        shown_digests
        if "everything" in request.POST
        else {key: expand_digest(checked_digests[key], shown_digests.get(key)) for key in checked_digests}
    )
    files = list(list_context_files(request.workspace).filter(pk__in=picks).order_by("path", "pk"))
    approved_count = 0
    for file in files:
        try:
            approve_file(file, digest=picks[file.pk], by=request.actor)
        except DomainError as error:
            messages.error(request, f"{file.path}: {error.message}")
        else:
            approved_count += 1
    if approved_count:
        message = ngettext("%(count)s file approved.", "%(count)s files approved.", approved_count)
        messages.success(request, message % {"count": approved_count})
    elif not files:
        messages.error(request, _("Select the files that you want to approve."))
    return redirect(get_back_url(request, reverse("inbox:list", args=[request.workspace.slug])))


def parse_picks(values: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Parse form values of the form `<file id>:<digest>`. Malformed values are skipped."""
    for value in list(values)[:PAGE_SIZE]:
        key, colon, digest = value.partition(":")
        if colon and key.isdecimal() and key.isascii() and len(key) < 16:
            yield int(key), digest


def expand_digest(prefix: str, full_digest: str | None) -> str:
    """Return the full digest if it starts with the prefix from the checkbox, otherwise the prefix.

    A shortened digest equals no file's digest, so the approval with it is refused.
    """
    return full_digest if full_digest is not None and full_digest.startswith(prefix) else prefix


def build_inbox_page(request: WorkspaceRequest) -> dict[str, Any]:
    """Build the template context of the inbox, with a number of queries that does not depend on its size."""
    workspace, filters = request.workspace, parse_inbox_filter(request)
    # Read the fingerprint before the files. If a file changes in between, the next poll detects the change.
    groups, runs = list_inbox_groups(workspace, filters.search), list(list_runs_with_refusals(workspace))
    holds = list(list_source_holds(workspace))
    mark = hash_page_state(
        get_inbox_fingerprint(groups, [(run.source_id, run.refusals_digest) for run in runs], holds),
        get_prompt_usage_fingerprint(workspace),
    )
    counts = build_inbox_counts(groups, filters)
    page = CountedPaginator(list_inbox_files(workspace, filters), PAGE_SIZE, counts.total).get_page(
        request.GET.get("page")
    )
    files, runs = list(page.object_list), [run for run in runs if is_run_shown(run, filters)]
    known_paths, live_paths = get_known_paths(workspace, {row.source_id for row in (*files, *runs)})
    readers = get_readers_by_agent(workspace) if files else {}
    reader_counts, checked_values = (
        count_readers(readers.values(), files, live_paths),
        frozenset(request.GET.getlist("pick")),
    )
    usages = describe_usages(files)
    validities = judge_skills(SkillReaders(workspace, readers, live_paths), files)
    return build_filter_context(request, filters, counts, page.number) | {
        "mark": mark,
        "page": page,
        "rows": [
            InboxRow(
                file,
                get_reader_count(file, reader_counts[file.pk]),
                usages[file.pk],
                checked_values,
                validities.get(file.pk),
            )
            for file in files
        ],
        "refused": list_source_refusals(runs, known_paths),
        "holds": [hold for hold in holds if is_run_shown(hold, filters)],
        "can_approve": any(file.status in APPROVABLE_STATUSES for file in files),
        "has_sources": bool(files) or has_sources(workspace),
    }


def judge_skills(readers: SkillReaders, files: Iterable[ContextFile]) -> dict[int, SkillValidity]:
    """Return for each skill that could be parsed the agents for which its latest revision is valid."""
    skills = [(file, file.latest) for file in files if file.file_kind == "skill" and file.exists]
    return {file.pk: readers.judge(file, latest) for file, latest in skills if latest and latest.head}


def parse_inbox_filter(request: WorkspaceRequest) -> InboxFilter:
    status = request.GET.get("status", "")
    known = status if status in STATUSES_BY_SEVERITY else ""
    return InboxFilter(
        known, get_query_param(request, "source")[:100], get_query_param(request, "q").strip()[:200]
    )


def is_run_shown(run: RefreshRun, filters: InboxFilter) -> bool:
    """Return whether the filters allow the refusals or the hold of this run.

    They have no file status and are not searched, so a status filter or a search text hides them.
    """
    return not filters.status and not filters.search and filters.source in {"", run.source.slug}


def get_reader_count(file: ContextFile, matched_count: int) -> int | None:
    if file.file_kind != "skill" or file.assigned_to == AssignedTo.WHERE_FOUND:
        return matched_count
    return None if file.assigned_to == AssignedTo.ALL else int(getattr(file, "chosen_count", 0))


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("live/", poll_inbox, name="live"),
    path("approve/", approve_selected, name="approve-selected"),
]
urls = (urlpatterns, "inbox")
