"""The live preview: the prompt assembled with the submitted draft. Nothing is stored."""

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
from personas.ui.review import NotReviewed
from prompts.assembly.sizes import measure_sections
from prompts.publishing.builds.compiler import NotBuildable, assemble_prompt, count_tool_tokens
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.preview.services import PromptPreview
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
    """Size, lost records and cut text of the prompt in one layout, or why it cannot be assembled."""

    name: str
    href: str
    tokens: int = 0
    sections: int = 0
    lost: Sequence[str] = ()
    # Section name and number of characters that did not fit.
    cut: Sequence[tuple[str, int]] = ()
    problems: Sequence[str] = ()
    failure: str = ""


def list_layout_previews(preview: PromptPreview, location: StudioLocation) -> list[LayoutPreview]:
    return [
        build_layout_preview(preview.with_layout(name), location.with_changes(layout=name).get_url())
        for name in LAYOUTS
    ]


def build_layout_preview(preview: PromptPreview, href: str) -> LayoutPreview:
    name = preview.collected.layout
    try:
        prompt = assemble_prompt(preview.collected)
    except NotBuildable as error:
        return LayoutPreview(name, href, failure=str(error))
    sizes = measure_sections(prompt.segments, count_tokens_cached)
    return LayoutPreview(
        name,
        href,
        sum(tokens for _, tokens in sizes.values()) + count_tool_tokens(prompt.tools),
        len(sizes),
        prompt.report.lost,
        [(part.name, part.cut) for part in prompt.report.parts if part.cut],
        prompt.report.problems,
    )


MAX_SHOWN_FLAGS = 5


class PreviewPane:
    """The right pane of the Studio: the assembled prompt and its template context."""

    def __init__(
        self,
        request: WorkspaceRequest,
        studio: StudioState,
        location: StudioLocation,
        slots: SlotForm,
        draft: DraftRecord | None,
    ) -> None:
        self.request, self.studio, self.location, self.slots, self.draft = (
            request,
            studio,
            location,
            slots,
            draft,
        )
        self.problem = ""

    @cached_property
    def preview(self) -> PreviewResult | None:
        channel = self.studio.get_channel(self.location.channel)
        if channel is None:
            return None
        try:
            if self.draft is None:
                return self.studio.preview_saved(channel, self.location.layout, self.slots)
            return self.studio.preview_draft(channel, self.location.layout, self.slots, self.draft)
        except NotBuildable as error:
            self.problem = str(error)
        except DomainError as error:
            self.problem = error.message
        return None

    @cached_property
    def studio_text(self) -> StudioText | None:
        return (
            StudioText(self.request.workspace, self.location, self.preview, self.draft)
            if self.preview
            else None
        )

    def get_context(self) -> dict[str, Any]:
        studio_text, location = self.studio_text, self.location
        flags = scan_record(self.draft.record) if self.draft else []
        return {
            "workspace": self.request.workspace,
            "agent": self.studio.agent,
            "location": location,
            "studio_text": studio_text,
            "preview": self.preview,
            "problem": self.problem,
            "unreleased": self.studio.get_unreleased_version(self.studio.get_channel(location.channel)),
            "slots": self.slots,
            "flags": flags[:MAX_SHOWN_FLAGS],
            "more_flags": max(0, len(flags) - MAX_SHOWN_FLAGS),
            "channels": [
                (
                    channel,
                    location.with_changes(channel=channel.slug).get_url(),
                    channel.slug == location.channel,
                )
                for channel in self.studio.channels
            ],
            "layouts": [
                (name, location.with_changes(layout=name).get_url(), name == self.layout) for name in LAYOUTS
            ],
            "is_active": has_permission(self.request.membership.role, Permission.EDIT),
            **{
                f"{page}_url": location.get_url(page)
                for page in ("show", "preview", "layouts", "save", "review")
            },
        }

    @property
    def layout(self) -> str:
        if self.preview:
            return self.preview.layout
        return self.location.layout or self.studio.agent.layout


@require_permission(Permission.EDIT, NotReviewed("shows the prompt with a draft"))
@require_POST
def studio_preview(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Render the prompt with the submitted draft, or only the field errors if the draft is invalid.

    With errors, htmx swaps nothing into the pane, so the last valid preview stays visible.
    """
    studio = get_studio_or_404(request, agent)
    location = get_studio_location(request, studio)
    open_part = get_submitted_part(request, studio, location)
    draft = open_part.build_draft()
    studio_fields = StudioFields(open_part.form)
    if draft is None:
        return render_form_errors(studio_fields)
    slots = SlotForm(request.POST, workspace=request.workspace, agent=studio.agent)
    context = PreviewPane(request, studio, location, slots, draft).get_context() | {
        "studio_fields": studio_fields,
        "is_fragment": True,
    }
    # Rendered without the request to avoid the queries of the page frame: the browser requests a preview at
    # every pause in typing.
    return HttpResponse(render_to_string("prompts/studio/_answer.html", context))


def render_form_errors(studio_fields: StudioFields) -> HttpResponse:
    html = render_to_string(
        "prompts/studio/_mistakes.html", {"studio_fields": studio_fields, "is_fragment": True}
    )
    return HttpResponse(html, status=422, headers={"HX-Reswap": "none"})


@require_permission(Permission.EDIT, NotReviewed("compares layouts"))
@require_POST
def studio_layouts(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Compare the submitted draft in all layouts: tokens, sections, lost records, cut text."""
    studio = get_studio_or_404(request, agent)
    location = get_studio_location(request, studio)
    open_part = get_submitted_part(request, studio, location)
    channel = studio.get_channel(location.channel)
    draft = open_part.build_draft()
    rows: list[LayoutPreview] = []
    if channel is not None:
        try:
            rows = list_layout_previews(studio.load_preview(channel, "", draft), location)
        except DomainError:
            rows = []
    context = {"rows": rows, "location": location, "chosen": location.layout or studio.agent.layout}
    context |= {
        "layouts_url": location.get_url("layouts"),
        "is_unsound": draft is None,
        "agent": studio.agent,
    }
    return HttpResponse(render_to_string("prompts/studio/_layouts.html", context))
