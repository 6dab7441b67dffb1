"""The Studio editor page, its start page, and polling for changes saved by other members."""

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
from prompts.publishing.preview.record_views import get_record_pages
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


def format_file_revisions(studio_text: StudioText | None) -> str:
    """Encode the context files of a prompt and their revisions as a short URL parameter."""
    sources = studio_text.sources if studio_text else {}
    files = sorted(
        {(int(origin.id), origin.revision) for origin in sources if is_context_file(origin.kind, origin.id)}
    )
    return ",".join(f"{key}.{number}" for key, number in files[:MAX_WATCHED_FILES])


def is_context_file(kind: str, key: str) -> bool:
    return kind == "context_file" and key.isdecimal()


def list_changed_files(workspace: Workspace, file_revisions: str) -> list[ContextFile]:
    """Return the files whose current revision differs from the one in the URL parameter."""
    pairs = [pair.partition(".")[::2] for pair in file_revisions.split(",")[:MAX_WATCHED_FILES]]
    known_numbers = {
        int(key): number for key, number in pairs if key.isascii() and key.isdecimal() and len(key) < 19
    }
    if not known_numbers:
        return []
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in=known_numbers).select_related("active")
    return [row for row in rows if str(row.active.number if row.active else 0) != known_numbers[row.pk]]


LAST_AGENTS_SESSION_KEY = "studio_agents"
MAX_SHOWN_AGENTS = 60
MAX_PICKER_AGENTS = 20


def studio_home(request: WorkspaceRequest) -> HttpResponse:
    """Redirect to the agent edited last in this session, or list all agents."""
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


# The draft is saved when the user leaves the page. Without never_cache, the back button would show the page
# from the browser's cache, without this draft.
@never_cache
def studio_editor(request: WorkspaceRequest, agent: str) -> HttpResponse:
    studio = get_studio_or_404(request, agent)
    save_last_agent(request, studio.agent)
    location = get_studio_location(request, studio)
    open_part = get_open_part(request, studio, location)
    slots = SlotForm(request.GET, workspace=request.workspace, agent=studio.agent)
    preview_pane = PreviewPane(request, studio, location, slots, open_part.build_draft())
    context = preview_pane.get_context() | get_editor_context(request, location, open_part)
    context["groups"] = list_part_groups(
        preview_pane.studio_text, location, studio.agent, studio.get_channel(location.channel)
    )
    # The picker shows names and emoji, so tools and channels are not loaded.
    agents = list_agents(request.workspace).filter(archived_at=None).prefetch_related(None)
    context["agents"] = agents[:MAX_PICKER_AGENTS]
    context["state_url"] = location.get_url(
        "state", seen=open_part.base_revision, files=format_file_revisions(preview_pane.studio_text)
    )
    return render(request, "prompts/studio/show.html", context)


def save_last_agent(request: WorkspaceRequest, agent: Agent) -> None:
    """Store the agent in the session for `studio_home`; the session is written only for another agent."""
    last_agents: dict[str, str] = request.session.get(LAST_AGENTS_SESSION_KEY, {})
    if last_agents.get(request.workspace.slug) != agent.slug:
        request.session[LAST_AGENTS_SESSION_KEY] = last_agents | {request.workspace.slug: agent.slug}


def get_editor_context(
    request: WorkspaceRequest, location: StudioLocation, open_part: OpenPart
) -> dict[str, Any]:
    part = open_part.part
    newer = find_latest_revision(open_part.record) if open_part.is_outdated and open_part.record else None
    return {
        "open_part": open_part,
        "record": open_part.record,
        "pages": open_part.pages,
        "studio_fields": StudioFields(open_part.form),
        "can_write": has_permission(request.membership.role, Permission.EDIT),
        "draft_key": f"{location.workspace}/{part.family}/{part.key}/{request.user.pk}",
        **get_newer_revision_context(request, open_part.pages, part, newer),
    }


def find_latest_revision(record: Record) -> Revision | None:
    return list_revisions(record).defer("data").first()


def studio_updates(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Answer the polling of an open Studio page.

    Return 204 unless the part or a context file of the prompt has changed since the page was rendered.
    """
    studio = get_studio_or_404(request, agent)
    location = get_studio_location(request, studio)
    pages = get_record_pages(location.part.family)
    record = find_part_record(request, studio, pages, location.part)
    known_revision = get_query_param(request, "seen")
    newer = (
        find_latest_revision(record)
        if record is not None and str(record.revision) != known_revision
        else None
    )
    changed_files = list_changed_files(request.workspace, get_query_param(request, "files"))
    if known_revision and newer is None and not changed_files:
        return HttpResponse(status=204)
    context = {
        "workspace": request.workspace,
        "changed": changed_files,
        "is_active": has_permission(request.membership.role, Permission.EDIT),
        "show_url": location.get_url(),
        "save_url": location.get_url("save"),
        **get_newer_revision_context(request, pages, location.part, newer),
    }
    return HttpResponse(render_to_string("prompts/studio/_state.html", context))


def get_newer_revision_context(
    request: WorkspaceRequest, pages: RecordPages[Any], part: PartRef, newer: Revision | None
) -> dict[str, Any]:
    if newer is None:
        return {"newer": None}
    url_args = [request.workspace.slug, part.key, newer.number]
    return {"newer": newer, "compare_url": reverse(f"{pages.name}:revision", args=url_args)}
