"""The assembled prompt beside the editor, drawn anew while somebody types; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.models import LAYOUTS
from personas.roles import Permission, may
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.assembly.sizes import section_texts
from prompts.builds.compiler import NotBuildable, assembled, tokens_in
from prompts.inputs import Draft
from prompts.preview.services import Preview
from prompts.studio.forms import Sheet
from prompts.studio.location import Place
from prompts.studio.open_part import found_desk, place_of, sent_part
from prompts.studio.prompt_view import Shown
from prompts.studio.slot_form import SlotForm
from prompts.studio.text_view import Reading
from prompts.studio.workbench import Desk
from skills.record_scan import flags_in


@dataclass(frozen=True)
class LayoutRow:
    """One layout: what it would make of the draft, or why it can make nothing."""

    name: str
    href: str
    tokens: int = 0
    sections: int = 0
    lost: Sequence[str] = ()
    # By section, how many characters did not fit.
    cut: Sequence[tuple[str, int]] = ()
    problems: Sequence[str] = ()
    failure: str = ""


def layout_rows(found: Preview, place: Place) -> list[LayoutRow]:
    return [layout_row(found.in_layout(name), place.at(layout=name).url()) for name in LAYOUTS]


def layout_row(found: Preview, href: str) -> LayoutRow:
    name = found.gathered.layout
    try:
        prompt = assembled(found.gathered)
    except NotBuildable as error:
        return LayoutRow(name, href, failure=str(error))
    texts = section_texts(prompt.segments)
    return LayoutRow(
        name,
        href,
        sum(tokens_in(text) for text in texts.values()),
        len(texts),
        prompt.report.lost,
        [(part.name, part.cut) for part in prompt.report.parts if part.cut],
        prompt.report.problems,
    )


MOST_FLAGS = 5


class Prospect:
    """What is to be seen in the right pane."""

    def __init__(
        self, request: WorkspaceRequest, desk: Desk, place: Place, slots: SlotForm, draft: Draft | None
    ) -> None:
        self.request, self.desk, self.place, self.slots, self.draft = request, desk, place, slots, draft
        self.problem = ""

    @cached_property
    def shown(self) -> Shown | None:
        channel = self.desk.channel(self.place.channel)
        if channel is None:
            return None
        try:
            if self.draft is None:
                return self.desk.saved(channel, self.place.layout, self.slots)
            return self.desk.drafted(channel, self.place.layout, self.slots, self.draft)
        except NotBuildable as error:
            self.problem = str(error)
        except DomainError as error:
            self.problem = error.message
        return None

    @cached_property
    def reading(self) -> Reading | None:
        return Reading(self.request.workspace, self.place, self.shown, self.draft) if self.shown else None

    def context(self) -> dict[str, Any]:
        reading, place = self.reading, self.place
        flags = flags_in(self.draft.record) if self.draft else []
        return {
            "workspace": self.request.workspace,
            "agent": self.desk.agent,
            "place": place,
            "reading": reading,
            "shown": self.shown,
            "problem": self.problem,
            "unreleased": self.desk.unreleased(self.desk.channel(place.channel)),
            "slots": self.slots,
            "flags": flags[:MOST_FLAGS],
            "more_flags": max(0, len(flags) - MOST_FLAGS),
            "channels": [
                (one, place.at(channel=one.slug).url(), one.slug == place.channel)
                for one in self.desk.channels
            ],
            "layouts": [(name, place.at(layout=name).url(), name == self.layout) for name in LAYOUTS],
            "is_live": may(self.request.membership.role, Permission.EDIT),
            **{f"{page}_url": place.url(page) for page in ("show", "preview", "layouts", "save", "review")},
        }

    @property
    def layout(self) -> str:
        if self.shown:
            return self.shown.layout
        return self.place.layout or self.desk.agent.layout


@needs(Permission.EDIT)
@require_POST
def preview(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """The text with the draft in it; with mistakes the last good one stays, and the fields tell."""
    desk = found_desk(request, agent)
    place = place_of(request, desk)
    opened = sent_part(request, desk, place)
    draft = opened.draft()
    sheet = Sheet(opened.form)
    if draft is None:
        return mistaken(sheet)
    slots = SlotForm(request.POST, workspace=request.workspace, agent=desk.agent)
    context = Prospect(request, desk, place, slots, draft).context() | {"sheet": sheet, "is_fragment": True}
    # Without the frame's own questions: this is asked at every pause in typing.
    return HttpResponse(render_to_string("prompts/studio/_answer.html", context))


def mistaken(sheet: Sheet) -> HttpResponse:
    words = render_to_string("prompts/studio/_mistakes.html", {"sheet": sheet, "is_fragment": True})
    return HttpResponse(words, status=422, headers={"HX-Reswap": "none"})


@needs(Permission.EDIT)
@require_POST
def layouts(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """The same draft in every layout: what each has room for, and what it loses."""
    desk = found_desk(request, agent)
    place = place_of(request, desk)
    opened = sent_part(request, desk, place)
    channel = desk.channel(place.channel)
    draft = opened.draft()
    rows: list[LayoutRow] = []
    if channel is not None:
        try:
            rows = layout_rows(desk.preview(channel, "", draft), place)
        except DomainError:
            rows = []
    context = {"rows": rows, "place": place, "chosen": place.layout or desk.agent.layout}
    context |= {"layouts_url": place.url("layouts"), "is_unsound": draft is None, "agent": desk.agent}
    return HttpResponse(render_to_string("prompts/studio/_layouts.html", context))
