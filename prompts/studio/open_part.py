"""What lies on the desk: the agent, the part that is open, its form, and the draft kept of it."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404

from personas.drafts.services import DraftValues, find_draft
from personas.errors import InvalidInput
from personas.models import LAYOUTS, Agent, KeptDraft, Record
from personas.records.forms import RecordForm
from personas.records.views import RecordPages, get_query_param
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest
from prompts.inputs import DraftRecord
from prompts.preview.drafts import build_form_draft, build_new_record
from prompts.preview.record_pages import get_page_record, get_record_pages
from prompts.studio.forms import AgentTextForm, build_form_data, get_submitted_values, set_form_access
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.workbench import StudioState

AGENT_FIELDS_BY_FAMILY = {"souls": "soul", "identities": "identity", "user-profiles": "user_profile"}


def get_studio_or_404(request: WorkspaceRequest, agent: str) -> StudioState:
    desk = StudioState.of(request.workspace, agent)
    if desk is None:
        raise Http404("No such agent.")
    return desk


def get_studio_location(request: WorkspaceRequest, desk: StudioState) -> StudioLocation:
    """From the address; a form that is drawn in place says anew which channel and layout it shows."""
    part = PartRef.read(get_query_param(request, "part"))
    channel = desk.channel(get_view_parameter(request, "channel"))
    layout = get_view_parameter(request, "layout")
    return StudioLocation(
        request.workspace.slug,
        desk.agent.slug,
        part if part.family else get_default_part(desk.agent),
        channel.slug if channel else "",
        layout if layout in LAYOUTS else "",
    )


def get_view_parameter(request: WorkspaceRequest, name: str) -> str:
    return request.POST.get(f"view-{name}") or request.GET.get(name, "")


def get_default_part(agent: Agent) -> PartRef:
    return PartRef("souls", agent.soul.slug) if agent.soul else PartRef("agents", agent.slug)


@dataclass
class OpenPart:
    """One part, ready to be written in."""

    pages: RecordPages[Any]
    part: PartRef
    # None: it would be a new one.
    record: Record | None
    form: RecordForm
    kept: KeptDraft | None = None

    @property
    def base_revision(self) -> int:
        if self.kept is not None:
            return self.kept.base_revision
        return self.record.revision if self.record else 0

    @property
    def is_outdated(self) -> bool:
        """Somebody saved after this draft was begun."""
        return self.record is not None and self.base_revision != self.record.revision

    def draft(self) -> DraftRecord | None:
        """What the form would make of the record; None where it has mistakes, which it then tells."""
        if not self.form.is_bound or not self.form.is_valid():
            return None
        record = self.record or build_new_record(self.pages.model, self.form.workspace, self.form.values())
        try:
            return build_form_draft(self.form, record)
        except InvalidInput as error:
            self.form.add_service_errors(error)
            return None

    @property
    def subject(self) -> Record:
        return self.record or build_new_record(self.pages.model, self.form.workspace, self.form.values())


def get_open_part(request: WorkspaceRequest, desk: StudioState, place: StudioLocation) -> OpenPart:
    """With the draft that is kept of it, if there is one; else as it is saved."""
    may_edit = has_permission(request.membership.role, Permission.EDIT)
    part = place.part
    kept = find_draft(request.workspace, request.user, part.family, part.key) if may_edit else None
    opened = build_open_part(request, desk, place, kept.values if kept else None)
    opened.kept = kept
    return opened


def get_submitted_part(request: WorkspaceRequest, desk: StudioState, place: StudioLocation) -> OpenPart:
    """With what the form sent."""
    opened = build_open_part(request, desk, place, None)
    return build_open_part(
        request, desk, place, get_submitted_values(opened.form, request.POST), record=opened.record
    )


def build_open_part(
    request: WorkspaceRequest,
    desk: StudioState,
    place: StudioLocation,
    typed: DraftValues | None,
    record: Record | None = None,
) -> OpenPart:
    pages = get_record_pages(place.part.family)
    record = record or find_part_record(request, desk, pages, place.part)
    data = None if typed is None else build_form_data(typed)
    initial = {} if record else {"agent": desk.agent}
    made = AgentTextForm if record and pages.name == "agents" else pages.form
    form = made(data, workspace=request.workspace, record=record, initial=initial)
    is_open = has_permission(request.membership.role, Permission.EDIT)
    return OpenPart(pages, place.part, record, set_form_access(form, is_open=is_open))


def find_part_record(
    request: WorkspaceRequest, desk: StudioState, pages: RecordPages[Any], part: PartRef
) -> Record | None:
    """The agent's own parts are at hand already."""
    if not part.key:
        return None
    own: Record | None = desk.agent if part.family == "agents" else None
    if part.family in AGENT_FIELDS_BY_FAMILY:
        own = getattr(desk.agent, AGENT_FIELDS_BY_FAMILY[part.family])
    if own is not None and getattr(own, pages.key) == part.key:
        return own
    return get_page_record(request, pages, part.key)


def get_submitted_revision(request: WorkspaceRequest) -> int:
    """The revision the person saw; after a conflict, the one they chose to overwrite."""
    for name in ("overwrite", "revision"):
        sent = request.POST.get(name, "")
        if sent.isascii() and sent.isdecimal() and len(sent) < 10:
            return int(sent)
    return 0
