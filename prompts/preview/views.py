"""What an edit in a form would do to prompts, asked before it is saved."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import Invalid
from personas.models import Record
from personas.records.forms import RecordForm
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.inputs import Draft
from prompts.preview.drafts import agents_touched, draft_in, new_record
from prompts.preview.impact import impact_of
from prompts.preview.record_pages import found_pages
from prompts.preview.review import approvers_of, effect_of, review_of_impact
from skills.record_scan import flags_in


@needs(Permission.EDIT)
@require_POST
def impact(request: WorkspaceRequest, family: str, key: str = "") -> HttpResponse:
    """The answer beside the form, or as a page of its own where there is no script."""
    pages = found_pages(family)
    record = pages.find(request, key) if key else None
    form = pages.form(request.POST, workspace=request.workspace, record=record)
    context: dict[str, Any] = {"form": form, "record": record, "pages": pages}
    subject = subject_of(form, record)
    draft = drafted(form, subject) if subject is not None else None
    if draft is not None and subject is not None:
        context |= told(request, subject, draft, is_new=record is None)
        context["again"] = [
            (name, value)
            for name, values in request.POST.lists()
            for value in values
            if name != "csrfmiddlewaretoken"
        ]
    # The address to save at, for the page that stands alone.
    context["save_url"] = pages.address(record, "edit") if record else pages.new_address(request)
    name = "_panel" if request.headers.get("HX-Request") else "page"
    return render(request, f"prompts/impact/{name}.html", context, status=200 if draft else 422)


def subject_of(form: RecordForm, record: Record | None) -> Record | None:
    """The record as it is, or as it would be made; nothing while the form has mistakes."""
    if not form.is_valid():
        return None
    return record or new_record(form.model, form.workspace, form.values())


def drafted(form: RecordForm, subject: Record) -> Draft | None:
    try:
        return draft_in(form, subject)
    except Invalid as error:
        form.take_errors(error)
        return None


def told(request: WorkspaceRequest, subject: Record, draft: Draft, *, is_new: bool) -> dict[str, Any]:
    found = impact_of(request.workspace, draft, agents_touched(subject, draft))
    effect = effect_of(found)
    return {
        "impact": found,
        "effect": effect,
        "review": review_of_impact(found, flags_in(draft.record)),
        "button": effect.words(_("Create") if is_new else _("Save")),
        "approvers": approvers_of(request.workspace, request.user) if effect.waiting else [],
    }


urls = (
    [
        path("<slug:family>/", impact, name="new"),
        path("<slug:family>/<str:key>/", impact, name="edit"),
    ],
    "impact",
)
