"""The review of a kept draft: what saving it would do, and the button that does it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from core.db.fields import FORBIDDEN_CHARACTERS, LINE_BREAKS
from personas.drafts.services import DraftChanged, apply_draft
from personas.errors import DomainError, EditConflict, InvalidInput
from personas.models import Record
from personas.records.conflict_views import describe_conflict
from personas.records.services import edit_record
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.toasts import add_toast
from prompts.inputs import DraftRecord
from prompts.preview.drafts import list_affected_agents
from prompts.preview.impact import compute_impact
from prompts.preview.review import build_impact_review, get_save_effect, list_approvers
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

MAX_MESSAGE_LENGTH = 200


@require_permission(Permission.EDIT)
def studio_review(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """A form from the desk is kept and led here; the button here applies what was kept."""
    desk = get_studio_or_404(request, agent)
    place = get_studio_location(request, desk)
    if request.method != "POST":
        return render_review(request, desk, place, get_open_part(request, desk, place))
    if "apply" not in request.POST:
        return submit_for_review(request, desk, place)
    return apply_reviewed_draft(request, desk, place, get_open_part(request, desk, place))


def submit_for_review(request: WorkspaceRequest, desk: StudioState, place: StudioLocation) -> HttpResponse:
    opened = get_submitted_part(request, desk, place)
    try:
        save_submitted_draft(request, desk, opened)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(place.url())
    return redirect(place.url("review"))


def render_review(
    request: WorkspaceRequest,
    desk: StudioState,
    place: StudioLocation,
    opened: OpenPart,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    draft = opened.draft() if opened.kept else None
    context: dict[str, Any] = {"opened": opened, "record": opened.record, "place": place, "agent": desk.agent}
    context |= {"pages": opened.pages, "show_url": place.url(), "review_url": place.url("review")}
    if draft is not None:
        context |= get_review_context(request, opened, draft)
    if draft is not None and opened.is_outdated and opened.record is not None and "conflict" not in more:
        context["conflict"] = describe_conflict(
            EditConflict(opened.record, opened.base_revision), opened.form
        )
    context["sheet"] = StudioFields(opened.form)
    return render(request, "prompts/studio/review.html", context | more, status=status)


def get_review_context(request: WorkspaceRequest, opened: OpenPart, draft: DraftRecord) -> dict[str, Any]:
    subject = opened.subject
    impact = compute_impact(request.workspace, draft, list_affected_agents(subject, draft))
    effect = get_save_effect(impact)
    verb = _("Save over theirs") if opened.is_outdated else _("Save") if opened.record else _("Create")
    return {
        "impact": impact,
        "effect": effect,
        "review": build_impact_review(impact, scan_record(draft.record)),
        "button": effect.format_button(verb),
        "approvers": list_approvers(request.workspace, request.user) if effect.waiting else [],
        "drafted": draft.record,
    }


def apply_reviewed_draft(
    request: WorkspaceRequest, desk: StudioState, place: StudioLocation, opened: OpenPart
) -> HttpResponse:
    if opened.kept is None:
        messages.error(request, _("There is no draft of this any more: nothing was saved."))
        return redirect(place.url())
    if opened.draft() is None:
        return render_review(request, desk, place, opened, status=422)
    message, kept = get_change_message(request), opened.kept
    try:
        if request.POST.get("draft", kept.mark) != kept.mark:
            raise DraftChanged(
                _("Your draft was changed after you looked, perhaps in another tab. Look again.")
            )
        saved = apply_draft(kept, lambda: save_draft_record(request, opened, message))
    except InvalidInput as error:
        opened.form.add_service_errors(error)
        return render_review(request, desk, place, opened, status=422)
    except EditConflict as conflict:
        told_words = describe_conflict(conflict, opened.form)
        return render_review(request, desk, place, opened, status=409, conflict=told_words, message=message)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(place.url("review"))
    add_saved_message(request, opened, saved)
    part = PartRef(opened.part.family, str(getattr(saved, opened.pages.key)))
    return redirect(place.at(part=part).url())


def get_change_message(request: WorkspaceRequest) -> str:
    """One line, without what no history could keep."""
    line = LINE_BREAKS.sub(" ", request.POST.get("message", ""))
    return FORBIDDEN_CHARACTERS.sub("", line).strip()[:MAX_MESSAGE_LENGTH]


def save_draft_record(request: WorkspaceRequest, opened: OpenPart, message: str) -> Record:
    values = opened.form.values()
    if opened.record is None:
        made: Record = opened.pages.create(request, values)
        return made
    expected = get_submitted_revision(request) if "overwrite" in request.POST else opened.base_revision
    return edit_record(opened.record, values, expected=expected, by=request.actor, message=message)


def add_saved_message(request: WorkspaceRequest, opened: OpenPart, saved: Record) -> None:
    before = opened.record.revision if opened.record else 0
    if opened.record is not None and saved.revision == before:
        add_toast(request, _("Nothing had changed."))
        return
    name = {"name": str(saved)}
    if opened.record is None:
        add_toast(request, _("“%(name)s” created.") % name)
        return
    place = [request.workspace.slug, getattr(saved, opened.pages.key), before]
    undo = reverse(f"{opened.pages.name}:revert", args=place)
    fields = {"expected": str(saved.revision)}
    add_toast(request, _("“%(name)s” saved.") % name, undo_url=undo, undo_fields=fields)
