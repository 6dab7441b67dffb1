"""The desk itself: the editor, the prompt beside it, and news of what others have saved meanwhile."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache

from personas.drafts.services import list_drafts
from personas.models import Agent, Record, Revision, Workspace
from personas.records.views import RecordPages, get_query_param
from personas.roles import Permission, has_permission
from personas.selectors import list_agents, list_revisions
from personas.tenancy.middleware import WorkspaceRequest
from prompts.preview.record_pages import get_record_pages
from prompts.studio.forms import StudioFields
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.open_part import (
    OpenPart,
    find_part_record,
    get_open_part,
    get_studio_location,
    get_studio_or_404,
)
from prompts.studio.part_picker import list_part_groups
from prompts.studio.preview_views import PreviewPane
from prompts.studio.slot_form import SlotForm
from prompts.studio.text_view import StudioText
from skills.models import ContextFile

MAX_WATCHED_FILES = 50


def format_file_revisions(reading: StudioText | None) -> str:
    """The files of a prompt with their revisions, short enough for an address."""
    sources = reading.sources if reading else {}
    files = sorted({(int(one.id), one.revision) for one in sources if is_context_file(one.kind, one.id)})
    return ",".join(f"{key}.{number}" for key, number in files[:MAX_WATCHED_FILES])


def is_context_file(kind: str, key: str) -> bool:
    return kind == "context_file" and key.isdecimal()


def list_changed_files(workspace: Workspace, said: str) -> list[ContextFile]:
    """Those that are at another revision by now."""
    pairs = [pair.partition(".")[::2] for pair in said.split(",")[:MAX_WATCHED_FILES]]
    seen = {int(key): number for key, number in pairs if key.isascii() and key.isdecimal() and len(key) < 19}
    if not seen:
        return []
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in=seen).select_related("in_force")
    return [row for row in rows if str(row.in_force.number if row.in_force else 0) != seen[row.pk]]


LAST_AGENTS_SESSION_KEY = "studio_agents"
MAX_SHOWN_AGENTS = 60


def studio_home(request: WorkspaceRequest) -> HttpResponse:
    """Back to the agent one worked on last; else a choice of all."""
    last = request.session.get(LAST_AGENTS_SESSION_KEY, {}).get(request.workspace.slug)
    agents = list_agents(request.workspace).filter(archived_at=None)
    if last and "all" not in request.GET and agents.filter(slug=last).exists():
        return redirect("studio:show", request.workspace.slug, last)
    context = {
        "agents": agents[:MAX_SHOWN_AGENTS],
        "is_cut": agents.count() > MAX_SHOWN_AGENTS,
        "drafts": list_drafts(request.workspace, request.user)[:5],
    }
    return render(request, "prompts/studio/home.html", context)


# On the way back a browser would show the page of before, without the draft that was kept on leaving it.
@never_cache
def studio_editor(request: WorkspaceRequest, agent: str) -> HttpResponse:
    desk = get_studio_or_404(request, agent)
    save_last_agent(request, desk.agent)
    place = get_studio_location(request, desk)
    opened = get_open_part(request, desk, place)
    slots = SlotForm(request.GET, workspace=request.workspace, agent=desk.agent)
    prospect = PreviewPane(request, desk, place, slots, opened.draft())
    context = prospect.context() | get_editor_context(request, place, opened)
    context["groups"] = list_part_groups(prospect.reading, place, desk.agent, desk.channel(place.channel))
    context["state_url"] = place.url(
        "state", seen=opened.base_revision, files=format_file_revisions(prospect.reading)
    )
    return render(request, "prompts/studio/show.html", context)


def save_last_agent(request: WorkspaceRequest, agent: Agent) -> None:
    """For the way back; written only when it is another one."""
    known: dict[str, str] = request.session.get(LAST_AGENTS_SESSION_KEY, {})
    if known.get(request.workspace.slug) != agent.slug:
        request.session[LAST_AGENTS_SESSION_KEY] = known | {request.workspace.slug: agent.slug}


def get_editor_context(request: WorkspaceRequest, place: StudioLocation, opened: OpenPart) -> dict[str, Any]:
    part = opened.part
    newer = find_latest_revision(opened.record) if opened.is_outdated and opened.record else None
    return {
        "opened": opened,
        "record": opened.record,
        "pages": opened.pages,
        "sheet": StudioFields(opened.form),
        "can_write": has_permission(request.membership.role, Permission.EDIT),
        "draft_key": f"{place.workspace}/{part.family}/{part.key}/{request.user.pk}",
        **get_newer_revision_context(request, opened.pages, part, newer),
    }


def find_latest_revision(record: Record) -> Revision | None:
    return list_revisions(record).defer("data").first()


def studio_updates(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Asked again and again by an open page: nothing, unless somebody saved the part or a file changed."""
    desk = get_studio_or_404(request, agent)
    place = get_studio_location(request, desk)
    pages = get_record_pages(place.part.family)
    record = find_part_record(request, desk, pages, place.part)
    seen = get_query_param(request, "seen")
    newer = find_latest_revision(record) if record is not None and str(record.revision) != seen else None
    changed = list_changed_files(request.workspace, get_query_param(request, "files"))
    if seen and newer is None and not changed:
        return HttpResponse(status=204)
    context = {
        "workspace": request.workspace,
        "changed": changed,
        "is_live": has_permission(request.membership.role, Permission.EDIT),
        "show_url": place.url(),
        "save_url": place.url("save"),
        **get_newer_revision_context(request, pages, place.part, newer),
    }
    return HttpResponse(render_to_string("prompts/studio/_state.html", context))


def get_newer_revision_context(
    request: WorkspaceRequest, pages: RecordPages[Any], part: PartRef, newer: Revision | None
) -> dict[str, Any]:
    if newer is None:
        return {"newer": None}
    place = [request.workspace.slug, part.key, newer.number]
    return {"newer": newer, "compare_url": reverse(f"{pages.name}:revision", args=place)}
