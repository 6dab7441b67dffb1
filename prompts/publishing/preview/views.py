"""Impact preview of a record form before it is saved."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import InvalidInput
from personas.models import Agent, Record
from personas.records.forms import RecordForm
from personas.records.views import RecordPages
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import NotReviewed
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.preview.drafts import build_form_draft, build_new_record, list_affected_agents
from prompts.publishing.preview.impact import compute_impact
from prompts.publishing.preview.record_views import get_record_pages
from prompts.publishing.provenance.usage import list_unused_layouts
from prompts.publishing.review.change_review import build_impact_review, get_save_effect, list_approvers
from prompts.publishing.review.services import preview_action
from skills.record_scan import scan_record


@require_permission(Permission.EDIT, NotReviewed("shows what saving would change"))
@require_POST
def preview_impact(request: WorkspaceRequest, family: str, key: str = "") -> HttpResponse:
    """Render the impact as a panel next to the form (HTMX), or as a page without JavaScript."""
    pages = get_record_pages(family)
    if not key and not pages.has_new_page:
        raise Http404("Records of this kind cannot be created here.")
    record = pages.find(request, key) if key else None
    form = pages.form(request.POST, workspace=request.workspace, record=record)
    context: dict[str, Any] = {"form": form, "record": record, "pages": pages}
    subject = get_draft_subject(form, record)
    draft = get_form_draft(form, subject) if subject is not None else None
    if draft is not None and subject is not None:
        try:
            context |= (
                get_new_agent_context(request, pages, form, draft)
                if record is None and isinstance(subject, Agent)
                else get_impact_context(request, subject, draft, is_new=record is None)
            )
        except InvalidInput as error:
            form.add_service_errors(error)
            draft = None
    if draft is not None:
        context["again"] = [
            (name, value)
            for name, values in request.POST.lists()
            for value in values
            if name != "csrfmiddlewaretoken"
        ]
    # Form action of the save button on the page for browsers without JavaScript.
    context["save_url"] = pages.get_record_url(record, "edit") if record else pages.get_new_url(request)
    name = "_panel" if request.headers.get("HX-Request") else "page"
    return render(request, f"prompts/impact/{name}.html", context, status=200 if draft else 422)


def get_draft_subject(form: RecordForm, record: Record | None) -> Record | None:
    """Return the stored record or a new unsaved one; None while the form is invalid."""
    if not form.is_valid():
        return None
    return record or build_new_record(form.model, form.workspace, form.values())


def get_form_draft(form: RecordForm, subject: Record) -> DraftRecord | None:
    try:
        return build_form_draft(form, subject)
    except InvalidInput as error:
        form.add_service_errors(error)
        return None


def get_new_agent_context(
    request: WorkspaceRequest, pages: RecordPages[Any], form: RecordForm, draft: DraftRecord
) -> dict[str, Any]:
    """Create the agent, show the prompts that this builds, and roll it back."""
    action = preview_action(request.workspace, lambda: pages.create(request, form.values()))
    return {
        "action": action,
        "effect": action.effect,
        "review": replace(action.review, flags=scan_record(draft.record)),
        "button": action.effect.format_button(_("Create")),
        "approvers": list_approvers(request.workspace, request.user) if action.effect.waiting else [],
    }


def get_impact_context(
    request: WorkspaceRequest, subject: Record, draft: DraftRecord, *, is_new: bool
) -> dict[str, Any]:
    impact = compute_impact(request.workspace, draft, list_affected_agents(subject, draft))
    effect = get_save_effect(impact)
    return {
        "impact": impact,
        "effect": effect,
        "review": build_impact_review(impact, scan_record(draft.record)),
        "button": effect.format_button(_("Create") if is_new else _("Save")),
        "approvers": list_approvers(request.workspace, request.user) if effect.waiting else [],
        "unused_layouts": list_unused_layouts(request.workspace, subject),
    }


urls = (
    [
        path("<slug:family>/", preview_impact, name="new"),
        path("<slug:family>/<str:key>/", preview_impact, name="edit"),
    ],
    "impact",
)
