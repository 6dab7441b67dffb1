"""The review of a kept draft: what saving it would do, and the button that does it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from core.db.fields import LINE_BREAKS, UNWRITABLE
from personas.drafts.services import DraftMoved, save_draft
from personas.errors import Conflict, DomainError, Invalid
from personas.models import Record
from personas.records.conflict_views import conflict_words
from personas.records.services import edit_record
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.toasts import say
from prompts.inputs import Draft
from prompts.preview.drafts import agents_touched
from prompts.preview.impact import impact_of
from prompts.preview.review import approvers_of, effect_of, review_of_impact
from prompts.studio.draft_views import keep
from prompts.studio.forms import Sheet
from prompts.studio.location import Part, Place
from prompts.studio.open_part import (
    Opened,
    found_desk,
    opened_part,
    place_of,
    revision_sent,
    sent_part,
)
from prompts.studio.workbench import Desk
from skills.record_scan import flags_in

LONGEST_MESSAGE = 200


@needs(Permission.EDIT)
def review(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """A form from the desk is kept and led here; the button here applies what was kept."""
    desk = found_desk(request, agent)
    place = place_of(request, desk)
    if request.method != "POST":
        return shown(request, desk, place, opened_part(request, desk, place))
    if "apply" not in request.POST:
        return to_review(request, desk, place)
    return applied(request, desk, place, opened_part(request, desk, place))


def to_review(request: WorkspaceRequest, desk: Desk, place: Place) -> HttpResponse:
    opened = sent_part(request, desk, place)
    try:
        keep(request, desk, opened)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(place.url())
    return redirect(place.url("review"))


def shown(
    request: WorkspaceRequest, desk: Desk, place: Place, opened: Opened, status: int = 200, **more: Any
) -> HttpResponse:
    draft = opened.draft() if opened.kept else None
    context: dict[str, Any] = {"opened": opened, "record": opened.record, "place": place, "agent": desk.agent}
    context |= {"pages": opened.pages, "show_url": place.url(), "review_url": place.url("review")}
    if draft is not None:
        context |= told(request, opened, draft)
    if draft is not None and opened.is_outdated and opened.record is not None and "conflict" not in more:
        context["conflict"] = conflict_words(Conflict(opened.record, opened.base_revision), opened.form)
    context["sheet"] = Sheet(opened.form)
    return render(request, "prompts/studio/review.html", context | more, status=status)


def told(request: WorkspaceRequest, opened: Opened, draft: Draft) -> dict[str, Any]:
    subject = opened.subject
    impact = impact_of(request.workspace, draft, agents_touched(subject, draft))
    effect = effect_of(impact)
    verb = _("Save over theirs") if opened.is_outdated else _("Save") if opened.record else _("Create")
    return {
        "impact": impact,
        "effect": effect,
        "review": review_of_impact(impact, flags_in(draft.record)),
        "button": effect.words(verb),
        "approvers": approvers_of(request.workspace, request.user) if effect.waiting else [],
        "drafted": draft.record,
    }


def applied(request: WorkspaceRequest, desk: Desk, place: Place, opened: Opened) -> HttpResponse:
    if opened.kept is None:
        messages.error(request, _("There is no draft of this any more: nothing was saved."))
        return redirect(place.url())
    if opened.draft() is None:
        return shown(request, desk, place, opened, status=422)
    message, kept = message_sent(request), opened.kept
    try:
        if request.POST.get("draft", kept.mark) != kept.mark:
            raise DraftMoved(
                _("Your draft was changed after you looked, perhaps in another tab. Look again.")
            )
        saved = save_draft(kept, lambda: written(request, opened, message))
    except Invalid as error:
        opened.form.take_errors(error)
        return shown(request, desk, place, opened, status=422)
    except Conflict as conflict:
        told_words = conflict_words(conflict, opened.form)
        return shown(request, desk, place, opened, status=409, conflict=told_words, message=message)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(place.url("review"))
    tell(request, opened, saved)
    part = Part(opened.part.family, str(getattr(saved, opened.pages.key)))
    return redirect(place.at(part=part).url())


def message_sent(request: WorkspaceRequest) -> str:
    """One line, without what no history could keep."""
    line = LINE_BREAKS.sub(" ", request.POST.get("message", ""))
    return UNWRITABLE.sub("", line).strip()[:LONGEST_MESSAGE]


def written(request: WorkspaceRequest, opened: Opened, message: str) -> Record:
    values = opened.form.values()
    if opened.record is None:
        made: Record = opened.pages.create(request, values)
        return made
    expected = revision_sent(request) if "overwrite" in request.POST else opened.base_revision
    return edit_record(opened.record, values, expected=expected, by=request.actor, message=message)


def tell(request: WorkspaceRequest, opened: Opened, saved: Record) -> None:
    before = opened.record.revision if opened.record else 0
    if opened.record is not None and saved.revision == before:
        say(request, _("Nothing had changed."))
        return
    name = {"name": str(saved)}
    if opened.record is None:
        say(request, _("“%(name)s” created.") % name)
        return
    place = [request.workspace.slug, getattr(saved, opened.pages.key), before]
    undo = reverse(f"{opened.pages.name}:revert", args=place)
    fields = {"expected": str(saved.revision)}
    say(request, _("“%(name)s” saved.") % name, undo_url=undo, undo_fields=fields)
