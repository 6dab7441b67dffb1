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
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from prompts.assembly.sizes import get_texts_by_section
from prompts.builds.compiler import NotBuildable, assemble_prompt, count_tokens_cached
from prompts.inputs import DraftRecord
from prompts.preview.services import PromptPreview
from prompts.studio.forms import StudioFields
from prompts.studio.location import StudioLocation
from prompts.studio.open_part import get_studio_location, get_studio_or_404, get_submitted_part
from prompts.studio.prompt_view import PreviewResult
from prompts.studio.slot_form import SlotForm
from prompts.studio.text_view import StudioText
from prompts.studio.workbench import StudioState
from skills.record_scan import scan_record


@dataclass(frozen=True)
class LayoutPreview:
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


def list_layout_previews(found: PromptPreview, place: StudioLocation) -> list[LayoutPreview]:
    return [build_layout_preview(found.with_layout(name), place.at(layout=name).url()) for name in LAYOUTS]


def build_layout_preview(found: PromptPreview, href: str) -> LayoutPreview:
    name = found.collected.layout
    try:
        prompt = assemble_prompt(found.collected)
    except NotBuildable as error:
        return LayoutPreview(name, href, failure=str(error))
    texts = get_texts_by_section(prompt.segments)
    return LayoutPreview(
        name,
        href,
        sum(count_tokens_cached(text) for text in texts.values()),
        len(texts),
        prompt.report.lost,
        [(part.name, part.cut) for part in prompt.report.parts if part.cut],
        prompt.report.problems,
    )


MAX_SHOWN_FLAGS = 5


class PreviewPane:
    """What is to be seen in the right pane."""

    def __init__(
        self,
        request: WorkspaceRequest,
        desk: StudioState,
        place: StudioLocation,
        slots: SlotForm,
        draft: DraftRecord | None,
    ) -> None:
        self.request, self.desk, self.place, self.slots, self.draft = request, desk, place, slots, draft
        self.problem = ""

    @cached_property
    def shown(self) -> PreviewResult | None:
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
    def reading(self) -> StudioText | None:
        return StudioText(self.request.workspace, self.place, self.shown, self.draft) if self.shown else None

    def context(self) -> dict[str, Any]:
        reading, place = self.reading, self.place
        flags = scan_record(self.draft.record) if self.draft else []
        return {
            "workspace": self.request.workspace,
            "agent": self.desk.agent,
            "place": place,
            "reading": reading,
            "shown": self.shown,
            "problem": self.problem,
            "unreleased": self.desk.unreleased(self.desk.channel(place.channel)),
            "slots": self.slots,
            "flags": flags[:MAX_SHOWN_FLAGS],
            "more_flags": max(0, len(flags) - MAX_SHOWN_FLAGS),
            "channels": [
                (one, place.at(channel=one.slug).url(), one.slug == place.channel)
                for one in self.desk.channels
            ],
            "layouts": [(name, place.at(layout=name).url(), name == self.layout) for name in LAYOUTS],
            "is_live": has_permission(self.request.membership.role, Permission.EDIT),
            **{f"{page}_url": place.url(page) for page in ("show", "preview", "layouts", "save", "review")},
        }

    @property
    def layout(self) -> str:
        if self.shown:
            return self.shown.layout
        return self.place.layout or self.desk.agent.layout


@require_permission(Permission.EDIT)
@require_POST
def studio_preview(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """The text with the draft in it; with mistakes the last good one stays, and the fields tell."""
    desk = get_studio_or_404(request, agent)
    place = get_studio_location(request, desk)
    opened = get_submitted_part(request, desk, place)
    draft = opened.draft()
    sheet = StudioFields(opened.form)
    if draft is None:
        return render_form_errors(sheet)
    slots = SlotForm(request.POST, workspace=request.workspace, agent=desk.agent)
    context = PreviewPane(request, desk, place, slots, draft).context() | {
        "sheet": sheet,
        "is_fragment": True,
    }
    # Without the frame's own questions: this is asked at every pause in typing.
    return HttpResponse(render_to_string("prompts/studio/_answer.html", context))


def render_form_errors(sheet: StudioFields) -> HttpResponse:
    words = render_to_string("prompts/studio/_mistakes.html", {"sheet": sheet, "is_fragment": True})
    return HttpResponse(words, status=422, headers={"HX-Reswap": "none"})


@require_permission(Permission.EDIT)
@require_POST
def studio_layouts(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """The same draft in every layout: what each has room for, and what it loses."""
    desk = get_studio_or_404(request, agent)
    place = get_studio_location(request, desk)
    opened = get_submitted_part(request, desk, place)
    channel = desk.channel(place.channel)
    draft = opened.draft()
    rows: list[LayoutPreview] = []
    if channel is not None:
        try:
            rows = list_layout_previews(desk.preview(channel, "", draft), place)
        except DomainError:
            rows = []
    context = {"rows": rows, "place": place, "chosen": place.layout or desk.agent.layout}
    context |= {"layouts_url": place.url("layouts"), "is_unsound": draft is None, "agent": desk.agent}
    return HttpResponse(render_to_string("prompts/studio/_layouts.html", context))
