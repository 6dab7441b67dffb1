"""What lies on the desk: the agent, the part that is open, its form, and the draft kept of it."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404

from personas.drafts.services import Typed, draft_kept
from personas.errors import Invalid
from personas.models import LAYOUTS, Agent, KeptDraft, Record
from personas.records.forms import RecordForm
from personas.records.views import RecordPages, asked
from personas.roles import Permission, may
from personas.tenancy.middleware import WorkspaceRequest
from prompts.inputs import Draft
from prompts.preview.drafts import draft_in, new_record
from prompts.preview.record_pages import found_pages, found_record
from prompts.studio.forms import AgentWordsForm, fitted, typed_data, typed_in
from prompts.studio.location import Part, Place
from prompts.studio.workbench import Desk

OWN = {"souls": "soul", "identities": "identity", "user-profiles": "user_profile"}


def found_desk(request: WorkspaceRequest, agent: str) -> Desk:
    desk = Desk.of(request.workspace, agent)
    if desk is None:
        raise Http404("No such agent.")
    return desk


def place_of(request: WorkspaceRequest, desk: Desk) -> Place:
    """From the address; a form that is drawn in place says anew which channel and layout it shows."""
    part = Part.read(asked(request, "part"))
    channel = desk.channel(said(request, "channel"))
    layout = said(request, "layout")
    return Place(
        request.workspace.slug,
        desk.agent.slug,
        part if part.family else default_part(desk.agent),
        channel.slug if channel else "",
        layout if layout in LAYOUTS else "",
    )


def said(request: WorkspaceRequest, name: str) -> str:
    return request.POST.get(f"view-{name}") or request.GET.get(name, "")


def default_part(agent: Agent) -> Part:
    return Part("souls", agent.soul.slug) if agent.soul else Part("agents", agent.slug)


@dataclass
class Opened:
    """One part, ready to be written in."""

    pages: RecordPages[Any]
    part: Part
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

    def draft(self) -> Draft | None:
        """What the form would make of the record; None where it has mistakes, which it then tells."""
        if not self.form.is_bound or not self.form.is_valid():
            return None
        record = self.record or new_record(self.pages.model, self.form.workspace, self.form.values())
        try:
            return draft_in(self.form, record)
        except Invalid as error:
            self.form.take_errors(error)
            return None

    @property
    def subject(self) -> Record:
        return self.record or new_record(self.pages.model, self.form.workspace, self.form.values())


def opened_part(request: WorkspaceRequest, desk: Desk, place: Place) -> Opened:
    """With the draft that is kept of it, if there is one; else as it is saved."""
    may_edit = may(request.membership.role, Permission.EDIT)
    part = place.part
    kept = draft_kept(request.workspace, request.user, part.family, part.key) if may_edit else None
    opened = opened_with(request, desk, place, kept.values if kept else None)
    opened.kept = kept
    return opened


def sent_part(request: WorkspaceRequest, desk: Desk, place: Place) -> Opened:
    """With what the form sent."""
    opened = opened_with(request, desk, place, None)
    return opened_with(request, desk, place, typed_in(opened.form, request.POST), record=opened.record)


def opened_with(
    request: WorkspaceRequest, desk: Desk, place: Place, typed: Typed | None, record: Record | None = None
) -> Opened:
    pages = found_pages(place.part.family)
    record = record or part_record(request, desk, pages, place.part)
    data = None if typed is None else typed_data(typed)
    initial = {} if record else {"agent": desk.agent}
    made = AgentWordsForm if record and pages.name == "agents" else pages.form
    form = made(data, workspace=request.workspace, record=record, initial=initial)
    is_open = may(request.membership.role, Permission.EDIT)
    return Opened(pages, place.part, record, fitted(form, is_open=is_open))


def part_record(request: WorkspaceRequest, desk: Desk, pages: RecordPages[Any], part: Part) -> Record | None:
    """The agent's own parts are at hand already."""
    if not part.key:
        return None
    own: Record | None = desk.agent if part.family == "agents" else None
    if part.family in OWN:
        own = getattr(desk.agent, OWN[part.family])
    if own is not None and getattr(own, pages.key) == part.key:
        return own
    return found_record(request, pages, part.key)


def revision_sent(request: WorkspaceRequest) -> int:
    """The revision the person saw; after a conflict, the one they chose to overwrite."""
    for name in ("overwrite", "revision"):
        sent = request.POST.get(name, "")
        if sent.isascii() and sent.isdecimal() and len(sent) < 10:
            return int(sent)
    return 0
