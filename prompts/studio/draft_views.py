"""Drafts that a member keeps: saved without leaving the page, listed, discarded."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.drafts.services import discard_draft, draft_kept, drafts_of, keep_draft
from personas.errors import DomainError
from personas.models import KeptDraft
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.toasts import say
from prompts.preview.record_pages import PAGES
from prompts.studio.forms import Sheet, typed_in
from prompts.studio.location import Part, Place
from prompts.studio.open_part import Opened, found_desk, place_of, revision_sent, sent_part
from prompts.studio.preview_views import mistaken
from prompts.studio.workbench import Desk

PAGE_SIZE = 50


@needs(Permission.EDIT)
@require_POST
def save(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Keep what is typed, sound or not; nobody else sees it and no prompt changes."""
    desk = found_desk(request, agent)
    place = place_of(request, desk)
    opened = sent_part(request, desk, place)
    try:
        kept = keep(request, desk, opened)
    except DomainError as error:
        return refused(request, place, opened, error)
    if request.headers.get("HX-Request"):
        return HttpResponse(render_to_string("prompts/studio/_saved.html", {"kept": kept}))
    say(request, _("Draft saved. Nobody else sees it, and no prompt has changed."))
    return redirect(place.url())


def keep(request: WorkspaceRequest, desk: Desk, opened: Opened) -> KeptDraft:
    return keep_draft(
        request.workspace,
        opened.part.family,
        opened.record,
        typed_in(opened.form, request.POST),
        key=opened.part.key,
        base_revision=revision_sent(request),
        agent=desk.agent,
        by=request.actor,
    )


def refused(request: WorkspaceRequest, place: Place, opened: Opened, error: DomainError) -> HttpResponse:
    if request.headers.get("HX-Request"):
        opened.form.add_error(None, error.message)
        return mistaken(Sheet(opened.form))
    messages.error(request, error.message)
    return redirect(place.url())


def index(request: WorkspaceRequest) -> HttpResponse:
    """One's own, with where each can be opened again."""
    rows = drafts_of(request.workspace, request.user)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    entries = [(draft, PAGES.get(draft.family), address(request, draft)) for draft in page.object_list]
    return render(request, "prompts/studio/drafts.html", {"page": page, "entries": entries})


def address(request: WorkspaceRequest, draft: KeptDraft) -> str:
    if draft.agent is None:
        return ""
    return Place(request.workspace.slug, draft.agent.slug, Part(draft.family, draft.key)).url()


@needs(Permission.EDIT)
@require_POST
def discard(request: WorkspaceRequest) -> HttpResponse:
    """One's own of the part that is named; others' are not even looked for."""
    part = Part.read(request.POST.get("part", "").replace("\x00", ""))
    kept = draft_kept(request.workspace, request.user, part.family, part.key)
    if kept is None:
        messages.error(request, _("There is no such draft any more."))
        return redirect("studio:drafts", request.workspace.slug)
    discard_draft(kept)
    say(request, _("Draft discarded."))
    back = address(request, kept) if request.POST.get("back") == "studio" else ""
    return redirect(back) if back else redirect("studio:drafts", request.workspace.slug)
