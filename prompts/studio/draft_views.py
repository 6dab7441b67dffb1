"""Views that save, list and discard the drafts of the signed-in member."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.drafts.services import discard_draft, find_draft, list_drafts, store_draft
from personas.errors import DomainError
from personas.models import FormDraft
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import NotReviewed
from personas.ui.toasts import add_toast
from prompts.publishing.preview.record_views import PAGES_BY_FAMILY
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


@require_permission(Permission.EDIT, NotReviewed("no prompt uses a draft"))
@require_POST
def save_draft_view(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Save the submitted form as a private draft, even if it is invalid; no prompt changes."""
    studio = get_studio_or_404(request, agent)
    location = get_studio_location(request, studio)
    open_part = get_submitted_part(request, studio, location)
    try:
        draft = save_submitted_draft(request, studio, open_part)
    except DomainError as error:
        return render_draft_error(request, location, open_part, error)
    if request.headers.get("HX-Request"):
        return HttpResponse(render_to_string("prompts/studio/_saved.html", {"saved_draft": draft}))
    add_toast(request, _("Draft saved. Only you can see it, and no prompt has changed."))
    return redirect(location.get_url())


def save_submitted_draft(request: WorkspaceRequest, studio: StudioState, open_part: OpenPart) -> FormDraft:
    return store_draft(
        request.workspace,
        open_part.part.family,
        open_part.record,
        get_submitted_values(open_part.form, request.POST),
        key=open_part.part.key,
        base_revision=get_submitted_revision(request),
        agent=studio.agent,
        by=request.actor,
    )


def render_draft_error(
    request: WorkspaceRequest, location: StudioLocation, open_part: OpenPart, error: DomainError
) -> HttpResponse:
    if request.headers.get("HX-Request"):
        open_part.form.add_error(None, error.message)
        return render_form_errors(StudioFields(open_part.form))
    messages.error(request, error.message)
    return redirect(location.get_url())


def index(request: WorkspaceRequest) -> HttpResponse:
    """List the member's own drafts with links that open them in the Studio."""
    rows = list_drafts(request.workspace, request.user)
    page = Paginator(rows, DRAFTS_PER_PAGE).get_page(request.GET.get("page"))
    entries = [
        (draft, PAGES_BY_FAMILY.get(draft.family), get_draft_url(request, draft))
        for draft in page.object_list
    ]
    return render(request, "prompts/studio/drafts.html", {"page": page, "entries": entries})


def get_draft_url(request: WorkspaceRequest, draft: FormDraft) -> str:
    if draft.agent is None:
        return ""
    return StudioLocation(
        request.workspace.slug, draft.agent.slug, PartRef(draft.family, draft.key)
    ).get_url()


@require_permission(Permission.EDIT, NotReviewed("no prompt uses a draft"))
@require_POST
def discard_draft_view(request: WorkspaceRequest) -> HttpResponse:
    """Discard the member's own draft of the submitted part; drafts of other members are never queried."""
    part = PartRef.parse(request.POST.get("part", "").replace("\x00", ""))
    draft = find_draft(request.workspace, request.user, part.family, part.key)
    if draft is None:
        messages.error(request, _("This draft no longer exists."))
        return redirect("studio:drafts", request.workspace.slug)
    discard_draft(draft)
    add_toast(request, _("Draft discarded."))
    back_url = get_draft_url(request, draft) if request.POST.get("back") == "studio" else ""
    return redirect(back_url) if back_url else redirect("studio:drafts", request.workspace.slug)
