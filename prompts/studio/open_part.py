"""The part that is open in the Studio editor: its record, its form and its saved draft."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404

from personas.drafts.services import DraftValues, find_draft
from personas.errors import InvalidInput
from personas.models import LAYOUTS, Agent, FormDraft, Record
from personas.records.forms import RecordForm
from personas.records.views import RecordPages, get_query_param
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.preview.drafts import build_form_draft, build_new_record
from prompts.publishing.preview.record_views import get_page_record, get_record_pages
from prompts.studio.forms import AgentTextForm, build_form_data, get_submitted_values, set_form_access
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.workbench import StudioState

AGENT_FIELDS_BY_FAMILY = {"souls": "soul", "identities": "identity", "user-profiles": "user_profile"}


def get_studio_or_404(request: WorkspaceRequest, agent: str) -> StudioState:
    studio = StudioState.load(request.workspace, agent)
    if studio is None:
        raise Http404("Agent not found.")
    return studio


def get_studio_location(request: WorkspaceRequest, studio: StudioState) -> StudioLocation:
    """Read the location from the URL; channel and layout submitted with the form take precedence."""
    part = PartRef.parse(get_query_param(request, "part"))
    channel = studio.get_channel(get_view_parameter(request, "channel"))
    layout = get_view_parameter(request, "layout")
    return StudioLocation(
        request.workspace.slug,
        studio.agent.slug,
        part if part.family else get_default_part(studio.agent),
        channel.slug if channel else "",
        layout if layout in LAYOUTS else "",
    )


def get_view_parameter(request: WorkspaceRequest, name: str) -> str:
    return request.POST.get(f"view-{name}") or request.GET.get(name, "")


def get_default_part(agent: Agent) -> PartRef:
    return PartRef("souls", agent.soul.slug) if agent.soul else PartRef("agents", agent.slug)


@dataclass
class OpenPart:
    """The open part with its form.

    The form is bound to the submitted values or to the saved draft; without either it is unbound.
    """

    pages: RecordPages[Any]
    part: PartRef
    # None for a new record.
    record: Record | None
    form: RecordForm
    saved_draft: FormDraft | None = None

    @property
    def base_revision(self) -> int:
        if self.saved_draft is not None:
            return self.saved_draft.base_revision
        return self.record.revision if self.record else 0

    @property
    def is_outdated(self) -> bool:
        """Whether the record was saved after this draft was started."""
        return self.record is not None and self.base_revision != self.record.revision

    def build_draft(self) -> DraftRecord | None:
        """Build the record as the form would save it.

        Return None if the form is unbound or invalid. Errors of the model validation are added to the form.
        """
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


def get_open_part(request: WorkspaceRequest, studio: StudioState, location: StudioLocation) -> OpenPart:
    """Return the part named in the URL with the member's saved draft, or as stored if there is no draft."""
    can_edit = has_permission(request.membership.role, Permission.EDIT)
    part = location.part
    saved_draft = find_draft(request.workspace, request.user, part.family, part.key) if can_edit else None
    open_part = build_open_part(request, studio, location, saved_draft.values if saved_draft else None)
    open_part.saved_draft = saved_draft
    return open_part


def get_submitted_part(request: WorkspaceRequest, studio: StudioState, location: StudioLocation) -> OpenPart:
    """Return the part named in the URL with its form bound to the submitted values."""
    open_part = build_open_part(request, studio, location, None)
    return build_open_part(
        request, studio, location, get_submitted_values(open_part.form, request.POST), record=open_part.record
    )


def build_open_part(
    request: WorkspaceRequest,
    studio: StudioState,
    location: StudioLocation,
    values: DraftValues | None,
    record: Record | None = None,
) -> OpenPart:
    pages = get_record_pages(location.part.family)
    record = record or find_part_record(request, studio, pages, location.part)
    data = None if values is None else build_form_data(values)
    initial = {} if record else {"agent": studio.agent}
    form_class = AgentTextForm if record and pages.name == "agents" else pages.form
    form = form_class(data, workspace=request.workspace, record=record, initial=initial)
    can_edit = has_permission(request.membership.role, Permission.EDIT)
    return OpenPart(pages, location.part, record, set_form_access(form, is_open=can_edit))


def find_part_record(
    request: WorkspaceRequest, studio: StudioState, pages: RecordPages[Any], part: PartRef
) -> Record | None:
    """Return the record of a part; the agent and its persona are already loaded and need no query."""
    if not part.key:
        if not pages.has_new_page:
            raise Http404("Records of this kind cannot be created here.")
        return None
    own: Record | None = studio.agent if part.family == "agents" else None
    if part.family in AGENT_FIELDS_BY_FAMILY:
        own = getattr(studio.agent, AGENT_FIELDS_BY_FAMILY[part.family])
    if own is not None and getattr(own, pages.key) == part.key:
        return own
    return get_page_record(request, pages, part.key)


def get_submitted_revision(request: WorkspaceRequest) -> int:
    """Return the revision the form was based on or, after a conflict, the one the user chose to overwrite."""
    for name in ("overwrite", "revision"):
        value = request.POST.get(name, "")
        if value.isascii() and value.isdecimal() and len(value) < 10:
            return int(value)
    return 0
