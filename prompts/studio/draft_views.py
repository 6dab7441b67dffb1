"""Drafts that a member keeps: saved without leaving the page, listed, discarded."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.drafts.services import discard_draft, find_draft, list_drafts, store_draft
from personas.errors import DomainError
from personas.models import KeptDraft
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.toasts import add_toast
from prompts.preview.record_pages import PAGES_BY_FAMILY
from prompts.studio.forms import StudioFields, get_submitted_values
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.open_part import (
    OpenPart,
    get_studio_location,
    get_studio_or_404,
    get_submitted_part,
    get_submitted_revision,
)
from prompts.studio.preview_views import render_form_errors
from prompts.studio.workbench import StudioState

DRAFTS_PER_PAGE = 50


@require_permission(Permission.EDIT)
@require_POST
def save_draft_view(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Keep what is typed, sound or not; nobody else sees it and no prompt changes."""
    desk = get_studio_or_404(request, agent)
    place = get_studio_location(request, desk)
    opened = get_submitted_part(request, desk, place)
    try:
        kept = save_submitted_draft(request, desk, opened)
    except DomainError as error:
        return render_draft_error(request, place, opened, error)
    if request.headers.get("HX-Request"):
        return HttpResponse(render_to_string("prompts/studio/_saved.html", {"kept": kept}))
    add_toast(request, _("Draft saved. Nobody else sees it, and no prompt has changed."))
    return redirect(place.url())


def save_submitted_draft(request: WorkspaceRequest, desk: StudioState, opened: OpenPart) -> KeptDraft:
    return store_draft(
        request.workspace,
        opened.part.family,
        opened.record,
        get_submitted_values(opened.form, request.POST),
        key=opened.part.key,
        base_revision=get_submitted_revision(request),
        agent=desk.agent,
        by=request.actor,
    )


def render_draft_error(
    request: WorkspaceRequest, place: StudioLocation, opened: OpenPart, error: DomainError
) -> HttpResponse:
    if request.headers.get("HX-Request"):
        opened.form.add_error(None, error.message)
        return render_form_errors(StudioFields(opened.form))
    messages.error(request, error.message)
    return redirect(place.url())


def index(request: WorkspaceRequest) -> HttpResponse:
    """One's own, with where each can be opened again."""
    rows = list_drafts(request.workspace, request.user)
    page = Paginator(rows, DRAFTS_PER_PAGE).get_page(request.GET.get("page"))
    entries = [
        (draft, PAGES_BY_FAMILY.get(draft.family), get_draft_url(request, draft))
        for draft in page.object_list
    ]
    return render(request, "prompts/studio/drafts.html", {"page": page, "entries": entries})


def get_draft_url(request: WorkspaceRequest, draft: KeptDraft) -> str:
    if draft.agent is None:
        return ""
    return StudioLocation(request.workspace.slug, draft.agent.slug, PartRef(draft.family, draft.key)).url()


@require_permission(Permission.EDIT)
@require_POST
def discard_draft_view(request: WorkspaceRequest) -> HttpResponse:
    """One's own of the part that is named; others' are not even looked for."""
    part = PartRef.read(request.POST.get("part", "").replace("\x00", ""))
    kept = find_draft(request.workspace, request.user, part.family, part.key)
    if kept is None:
        messages.error(request, _("There is no such draft any more."))
        return redirect("studio:drafts", request.workspace.slug)
    discard_draft(kept)
    add_toast(request, _("Draft discarded."))
    back = get_draft_url(request, kept) if request.POST.get("back") == "studio" else ""
    return redirect(back) if back else redirect("studio:drafts", request.workspace.slug)
