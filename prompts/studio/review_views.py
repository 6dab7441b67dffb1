"""The review page of a saved draft: shows the impact of applying it, and applies it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from personas.drafts.services import DraftChanged, apply_draft
from personas.errors import DomainError, EditConflict, InvalidInput
from personas.models import Record
from personas.records.conflict_views import describe_conflict
from personas.records.services import edit_record
from personas.records.views import get_change_message
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.responses import REVIEWED_FIELD, create_review_token
from personas.ui.review import Reviewed
from personas.ui.toasts import add_toast
from prompts.models import PromptSettings
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.preview.drafts import list_affected_agents
from prompts.publishing.preview.impact import compute_impact
from prompts.publishing.review.change_review import build_impact_review, get_save_effect, list_approvers
from prompts.publishing.review.services import hash_impact
from prompts.publishing.settings.services import put_settings
from prompts.studio.draft_views import save_submitted_draft
from prompts.studio.forms import StudioFields
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.open_part import (
    OpenPart,
    get_open_part,
    get_studio_location,
    get_studio_or_404,
    get_submitted_part,
    get_submitted_revision,
)
from prompts.studio.workbench import StudioState
from skills.record_scan import scan_record


@require_permission(Permission.EDIT, Reviewed())
def studio_review(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Show the review page.

    A POST from the editor saves the draft and redirects here. A POST from the review page applies the draft.
    """
    studio = get_studio_or_404(request, agent)
    location = get_studio_location(request, studio)
    if request.method != "POST":
        return render_review(request, studio, location, get_open_part(request, studio, location))
    if "apply" not in request.POST:
        return submit_for_review(request, studio, location)
    return apply_reviewed_draft(request, studio, location, get_open_part(request, studio, location))


def submit_for_review(
    request: WorkspaceRequest, studio: StudioState, location: StudioLocation
) -> HttpResponse:
    open_part = get_submitted_part(request, studio, location)
    try:
        save_submitted_draft(request, studio, open_part)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(location.get_url())
    return redirect(location.get_url("review"))


def render_review(
    request: WorkspaceRequest,
    studio: StudioState,
    location: StudioLocation,
    open_part: OpenPart,
    status: int = 200,
    **extra_context: Any,
) -> HttpResponse:
    draft = open_part.build_draft() if open_part.saved_draft else None
    context: dict[str, Any] = {
        "open_part": open_part,
        "record": open_part.record,
        "location": location,
        "agent": studio.agent,
    }
    context |= {
        "pages": open_part.pages,
        "show_url": location.get_url(),
        "review_url": location.get_url("review"),
    }
    if draft is not None:
        context |= get_review_context(request, open_part, draft)
    if (
        draft is not None
        and open_part.is_outdated
        and open_part.record is not None
        and "conflict" not in extra_context
    ):
        context["conflict"] = describe_conflict(
            EditConflict(open_part.record, open_part.base_revision), open_part.form
        )
    context["studio_fields"] = StudioFields(open_part.form)
    return render(request, "prompts/studio/review.html", context | extra_context, status=status)


def get_review_context(request: WorkspaceRequest, open_part: OpenPart, draft: DraftRecord) -> dict[str, Any]:
    subject = open_part.subject
    impact = compute_impact(request.workspace, draft, list_affected_agents(subject, draft))
    effect = get_save_effect(impact)
    action = (
        _("Overwrite their changes")
        if open_part.is_outdated
        else _("Save")
        if open_part.record and open_part.record.pk
        else _("Create")
    )
    return {
        "impact": impact,
        "effect": effect,
        "review": build_impact_review(impact, scan_record(draft.record)),
        "button": effect.format_button(action),
        "approvers": list_approvers(request.workspace, request.user) if effect.waiting else [],
        "drafted": draft.record,
        "token_field": REVIEWED_FIELD,
        "token": create_review_token(request.user.pk, request.path, hash_impact(impact)),
    }


def apply_reviewed_draft(
    request: WorkspaceRequest, studio: StudioState, location: StudioLocation, open_part: OpenPart
) -> HttpResponse:
    if open_part.saved_draft is None:
        messages.error(request, _("This draft no longer exists. Nothing was saved."))
        return redirect(location.get_url())
    if open_part.build_draft() is None:
        return render_review(request, studio, location, open_part, status=422)
    message, saved_draft = get_change_message(request), open_part.saved_draft
    try:
        if request.POST.get("draft", saved_draft.mark) != saved_draft.mark:
            raise DraftChanged(
                _("Your draft changed after you opened this page, perhaps in another tab. Check it again.")
            )
        saved = apply_draft(saved_draft, lambda: save_draft_record(request, open_part, message))
    except InvalidInput as error:
        open_part.form.add_service_errors(error)
        return render_review(request, studio, location, open_part, status=422)
    except EditConflict as conflict:
        description = describe_conflict(conflict, open_part.form)
        return render_review(
            request, studio, location, open_part, status=409, conflict=description, message=message
        )
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(location.get_url("review"))
    add_saved_message(request, open_part, saved)
    part = PartRef(open_part.part.family, str(getattr(saved, open_part.pages.key)))
    return redirect(location.with_changes(part=part).get_url())


def save_draft_record(request: WorkspaceRequest, open_part: OpenPart, message: str) -> Record:
    # A draft must not lift a review, which requires a recent sign-in. Without a reason, lifting fails.
    values = open_part.form.values() | {"reason": ""}
    if open_part.record is None:
        record: Record = open_part.pages.create(request, values)
        return record
    expected = get_submitted_revision(request) if "overwrite" in request.POST else open_part.base_revision
    if isinstance(open_part.record, PromptSettings):
        row = open_part.record
        level: dict[str, Any] = {"agent": row.agent, "channel": row.channel}
        return put_settings(
            request.workspace, values, expected=expected, by=request.actor, message=message, **level
        )
    return edit_record(open_part.record, values, expected=expected, by=request.actor, message=message)


def add_saved_message(request: WorkspaceRequest, open_part: OpenPart, saved: Record) -> None:
    before = open_part.record.revision if open_part.record else 0
    if open_part.record is not None and saved.revision == before:
        add_toast(request, _("Nothing changed."))
        return
    name = {"name": str(saved)}
    if not before:
        add_toast(request, _("“%(name)s” created.") % name)
        return
    url_args = [request.workspace.slug, getattr(saved, open_part.pages.key), before]
    undo_url = reverse(f"{open_part.pages.name}:revert", args=url_args)
    fields = {"expected": str(saved.revision)}
    add_toast(request, _("“%(name)s” saved.") % name, undo_url=undo_url, undo_fields=fields)
