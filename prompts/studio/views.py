"""The desk itself: the editor, the prompt beside it, and news of what others have saved meanwhile."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache

from personas.drafts.services import drafts_of
from personas.models import Agent, Record, Revision, Workspace
from personas.records.views import RecordPages, asked
from personas.roles import Permission, may
from personas.selectors import agents_of, revisions_of
from personas.tenancy.middleware import WorkspaceRequest
from prompts.preview.record_pages import found_pages
from prompts.studio.forms import Sheet
from prompts.studio.location import Part, Place
from prompts.studio.open_part import Opened, found_desk, opened_part, part_record, place_of
from prompts.studio.part_picker import groups_of
from prompts.studio.preview_views import Prospect
from prompts.studio.slot_form import SlotForm
from prompts.studio.text_view import Reading
from skills.models import ContextFile

MOST = 50


def files_said(reading: Reading | None) -> str:
    """The files of a prompt with their revisions, short enough for an address."""
    sources = reading.sources if reading else {}
    files = sorted({(int(one.id), one.revision) for one in sources if is_file(one.kind, one.id)})
    return ",".join(f"{key}.{number}" for key, number in files[:MOST])


def is_file(kind: str, key: str) -> bool:
    return kind == "context_file" and key.isdecimal()


def files_now(workspace: Workspace, said: str) -> list[ContextFile]:
    """Those that are at another revision by now."""
    pairs = [pair.partition(".")[::2] for pair in said.split(",")[:MOST]]
    seen = {int(key): number for key, number in pairs if key.isascii() and key.isdecimal() and len(key) < 19}
    if not seen:
        return []
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in=seen).select_related("in_force")
    return [row for row in rows if str(row.in_force.number if row.in_force else 0) != seen[row.pk]]


LAST = "studio_agents"
MOST_AGENTS = 60


def home(request: WorkspaceRequest) -> HttpResponse:
    """Back to the agent one worked on last; else a choice of all."""
    last = request.session.get(LAST, {}).get(request.workspace.slug)
    agents = agents_of(request.workspace).filter(archived_at=None)
    if last and "all" not in request.GET and agents.filter(slug=last).exists():
        return redirect("studio:show", request.workspace.slug, last)
    context = {
        "agents": agents[:MOST_AGENTS],
        "is_cut": agents.count() > MOST_AGENTS,
        "drafts": drafts_of(request.workspace, request.user)[:5],
    }
    return render(request, "prompts/studio/home.html", context)


# On the way back a browser would show the page of before, without the draft that was kept on leaving it.
@never_cache
def show(request: WorkspaceRequest, agent: str) -> HttpResponse:
    desk = found_desk(request, agent)
    remember(request, desk.agent)
    place = place_of(request, desk)
    opened = opened_part(request, desk, place)
    slots = SlotForm(request.GET, workspace=request.workspace, agent=desk.agent)
    prospect = Prospect(request, desk, place, slots, opened.draft())
    context = prospect.context() | desk_context(request, place, opened)
    context["groups"] = groups_of(prospect.reading, place, desk.agent, desk.channel(place.channel))
    context["state_url"] = place.url("state", seen=opened.base_revision, files=files_said(prospect.reading))
    return render(request, "prompts/studio/show.html", context)


def remember(request: WorkspaceRequest, agent: Agent) -> None:
    """For the way back; written only when it is another one."""
    known: dict[str, str] = request.session.get(LAST, {})
    if known.get(request.workspace.slug) != agent.slug:
        request.session[LAST] = known | {request.workspace.slug: agent.slug}


def desk_context(request: WorkspaceRequest, place: Place, opened: Opened) -> dict[str, Any]:
    part = opened.part
    newer = newest(opened.record) if opened.is_outdated and opened.record else None
    return {
        "opened": opened,
        "record": opened.record,
        "pages": opened.pages,
        "sheet": Sheet(opened.form),
        "can_write": may(request.membership.role, Permission.EDIT),
        "draft_key": f"{place.workspace}/{part.family}/{part.key}/{request.user.pk}",
        **newer_context(request, opened.pages, part, newer),
    }


def newest(record: Record) -> Revision | None:
    return revisions_of(record).defer("data").first()


def state(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Asked again and again by an open page: nothing, unless somebody saved the part or a file changed."""
    desk = found_desk(request, agent)
    place = place_of(request, desk)
    pages = found_pages(place.part.family)
    record = part_record(request, desk, pages, place.part)
    seen = asked(request, "seen")
    newer = newest(record) if record is not None and str(record.revision) != seen else None
    changed = files_now(request.workspace, asked(request, "files"))
    if seen and newer is None and not changed:
        return HttpResponse(status=204)
    context = {
        "workspace": request.workspace,
        "changed": changed,
        "is_live": may(request.membership.role, Permission.EDIT),
        "show_url": place.url(),
        "save_url": place.url("save"),
        **newer_context(request, pages, place.part, newer),
    }
    return HttpResponse(render_to_string("prompts/studio/_state.html", context))


def newer_context(
    request: WorkspaceRequest, pages: RecordPages[Any], part: Part, newer: Revision | None
) -> dict[str, Any]:
    if newer is None:
        return {"newer": None}
    place = [request.workspace.slug, part.key, newer.number]
    return {"newer": newer, "compare_url": reverse(f"{pages.name}:revision", args=place)}
