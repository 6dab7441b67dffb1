"""One found file: its words, its history, and what can be done with it."""

from collections.abc import Callable
from io import BytesIO

from django.contrib import messages
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError, Invalid
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.responses import back_or
from personas.ui.toasts import say
from skills.archives import write_zip
from skills.files.forms import ReachForm, WaiverForm
from skills.files.page import file_page, glance_at, revision_page
from skills.files.selectors import files_of, revisions_of, skill_folder, waivers_of
from skills.files.services import (
    adopt_file,
    end_waiver,
    hand_to_agents,
    heed_file,
    ignore_file,
    waive_findings,
)
from skills.models import ContextFile

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


def detail(request: WorkspaceRequest, key: int) -> HttpResponse:
    return render(request, "skills/files/detail.html", file_page(request, found(request, key)))


def peek(request: WorkspaceRequest, key: int) -> HttpResponse:
    """A glance at what changed, for a card beside the link that leads to all of it."""
    return render(request, "skills/files/_peek.html", glance_at(found(request, key)))


def revision(request: WorkspaceRequest, key: int, number: int) -> HttpResponse:
    file = found(request, key)
    one = get_object_or_404(revisions_of(file).select_related("content"), number=number)
    return render(request, "skills/files/revision.html", revision_page(file, one))


def raw(request: WorkspaceRequest, key: int, number: int) -> HttpResponseBase:
    """The very bytes, to take away; no browser shows them as a page of ours."""
    file = found(request, key)
    data = get_object_or_404(revisions_of(file).select_related("content"), number=number).content.data
    if data is None:
        raise Http404("Its words were erased.")
    return download(bytes(data), file.path.rpartition("/")[2], "text/plain; charset=utf-8")


@needs(EDIT)
@require_POST
def adopt(request: WorkspaceRequest, key: int) -> HttpResponse:
    digest = request.POST.get("digest", "")
    return carried_out(
        request, key, lambda file: adopt_file(file, digest=digest, by=request.actor), _("Adopted")
    )


@needs(EDIT)
@require_POST
def ignore(request: WorkspaceRequest, key: int) -> HttpResponse:
    return carried_out(
        request, key, lambda file: ignore_file(file, by=request.actor), _("Ignored from now on"), undo="heed"
    )


@needs(EDIT)
@require_POST
def heed(request: WorkspaceRequest, key: int) -> HttpResponse:
    return carried_out(
        request, key, lambda file: heed_file(file, by=request.actor), _("Heeded again"), undo="ignore"
    )


@needs(APPROVE)
@require_POST
def waive(request: WorkspaceRequest, key: int) -> HttpResponse:
    file = found(request, key)
    form = WaiverForm(request.POST)
    if form.is_valid():
        said = form.cleaned_data
        try:
            waive_findings(file, **said, by=request.actor)
        except Invalid as error:
            form.take_errors(error)
        except DomainError as error:
            messages.error(request, error.message)
            return redirect(address(file))
        else:
            messages.success(
                request,
                _("Waived until %(day)s: %(path)s.")
                % {"day": f"{said['until']:%d %b %Y}", "path": file.path},
            )
            return redirect(address(file))
    page = file_page(request, file, waiver_form=form)
    return render(request, "skills/files/detail.html", page, status=422)


@needs(APPROVE)
@require_POST
def take_back_waiver(request: WorkspaceRequest, key: int, waiver: int) -> HttpResponse:
    file = found(request, key)
    row = get_object_or_404(waivers_of(file).select_related("file__source"), pk=waiver)
    end_waiver(row, by=request.actor)
    messages.success(request, _("The waiver has ended."))
    return redirect(address(file))


@needs(EDIT)
@require_POST
def reach(request: WorkspaceRequest, key: int) -> HttpResponse:
    file = found_skill(request, key)
    form = ReachForm(request.POST, workspace=request.workspace)
    if not form.is_valid():
        page = file_page(request, file, reach_form=form)
        return render(request, "skills/files/detail.html", page, status=422)
    said = form.cleaned_data
    hand_to_agents(file, said["reach"], said["agents"], by=request.actor)
    messages.success(request, _("Saved who gets “%(name)s”.") % {"name": file.name or file.path})
    return redirect(address(file))


def export(request: WorkspaceRequest, key: int) -> HttpResponseBase:
    """A skill as a folder in a zip."""
    folder = skill_folder(found_skill(request, key))
    if folder is None:
        raise Http404("Its words were erased.")
    name, files = folder
    return download(write_zip(files), f"{name}.zip", "application/zip")


# --- plumbing ------------------------------------------------------------------------------------------


def found(request: WorkspaceRequest, key: int) -> ContextFile:
    rows = files_of(request.workspace)
    contents = ("newest__content", "agreed__content", "in_force__content")
    return get_object_or_404(rows.select_related("source__workspace", *contents), pk=key)


def found_skill(request: WorkspaceRequest, key: int) -> ContextFile:
    file = found(request, key)
    if file.file_kind != "skill":
        raise Http404("Not a skill.")
    return file


def carried_out(
    request: WorkspaceRequest, key: int, verb: Callable[[ContextFile], object], said: str, undo: str = ""
) -> HttpResponse:
    """Do it and say so, or say why not; `undo` names the verb that does the opposite."""
    file = found(request, key)
    back = back_or(request, address(file))
    try:
        verb(file)
    except DomainError as error:
        messages.error(request, f"{file.path}: {error.message}")
    else:
        url = reverse(f"files:{undo}", args=[request.workspace.slug, file.pk]) if undo else ""
        say(request, f"{said}: {file.path}.", undo_url=url, undo_fields={"back": back})
    return redirect(back)


def download(data: bytes, name: str, kind: str) -> HttpResponseBase:
    return FileResponse(BytesIO(data), as_attachment=True, filename=name, content_type=kind)


def address(file: ContextFile) -> str:
    return reverse("files:detail", args=[file.source.workspace.slug, file.pk])


urlpatterns: list[URLPattern] = [
    path("<int:key>/", detail, name="detail"),
    path("<int:key>/peek/", peek, name="peek"),
    path("<int:key>/revisions/<int:number>/", revision, name="revision"),
    path("<int:key>/revisions/<int:number>/raw/", raw, name="raw"),
    path("<int:key>/adopt/", adopt, name="adopt"),
    path("<int:key>/ignore/", ignore, name="ignore"),
    path("<int:key>/heed/", heed, name="heed"),
    path("<int:key>/waive/", waive, name="waive"),
    path("<int:key>/waivers/<int:waiver>/end/", take_back_waiver, name="end-waiver"),
    path("<int:key>/reach/", reach, name="reach"),
    path("<int:key>/export/", export, name="export"),
]
urls = (urlpatterns, "files")
