"""Pages of one context file: text, history and actions."""

from collections.abc import Callable
from io import BytesIO

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from personas.errors import DomainError, InvalidInput
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, describe_required_roles, require_permission
from personas.ui.responses import get_back_url, get_unchanged_response
from personas.ui.review import Reviewed
from personas.ui.toasts import add_toast
from skills.archives import write_zip
from skills.files.forms import AssignmentForm, WaiverForm
from skills.files.page import build_diff_preview, build_file_page, build_revision_page, get_file_mark
from skills.files.selectors import (
    get_revision_text,
    get_skill_folder,
    list_context_files,
    list_revisions,
    list_waivers,
)
from skills.files.services import (
    approve_file,
    assign_skill_file,
    end_waiver,
    ignore_file,
    revert_file,
    unignore_file,
    waive_findings,
)
from skills.models import ContextFile, FileRevision, FileStatus

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


def detail(request: WorkspaceRequest, key: int) -> HttpResponse:
    return render(
        request, "skills/files/detail.html", build_file_page(request, get_requested_file(request, key))
    )


def live_file(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Render the parts of the page that change with the file, or 204 if nothing has changed.

    The form that allows findings stays, with its typed text and the digest that was viewed, while the file is
    in quarantine.
    """
    file = get_object_or_404(list_context_files(request.workspace), pk=key)
    if response := get_unchanged_response(request, get_file_mark(file)):
        return response
    page = build_file_page(request, get_requested_file(request, key))
    keeps_waiver = request.GET.get("status") == file.status == FileStatus.QUARANTINED
    return render(request, "skills/files/_live.html", page | {"is_live": True, "keeps_waiver": keeps_waiver})


def preview_changes(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Render the first changed lines of a file for the preview popover of the inbox."""
    return render(request, "skills/files/_peek.html", build_diff_preview(get_requested_file(request, key)))


def revision_detail(request: WorkspaceRequest, key: int, number: int) -> HttpResponse:
    file = get_requested_file(request, key)
    revision = get_object_or_404(list_revisions(file).select_related("content"), number=number)
    return render(request, "skills/files/revision.html", build_revision_page(file, revision))


def download_revision(request: WorkspaceRequest, key: int, number: int) -> HttpResponseBase:
    """Send the exact bytes of a revision as an attachment.

    A browser then saves the untrusted content instead of rendering it on the origin of this application. If
    it contains secrets, which pages mask, only members who may approve get it.
    """
    file = get_requested_file(request, key)
    revision = get_object_or_404(list_revisions(file).select_related("content"), number=number)
    data = revision.content.data
    if data is None:
        raise Http404("Its text was erased.")
    check_download_permission(request, revision)
    return download_response(bytes(data), file.path.rpartition("/")[2], "text/plain; charset=utf-8")


@require_permission(EDIT, Reviewed(gettext_lazy("Approve")))
@require_POST
def approve(request: WorkspaceRequest, key: int) -> HttpResponse:
    digest = request.POST.get("digest", "")
    return run_file_action(
        request, key, lambda file: approve_file(file, digest=digest, by=request.actor), _("Approved")
    )


@require_permission(EDIT, Reviewed(gettext_lazy("Revert")))
@require_POST
def revert(request: WorkspaceRequest, key: int) -> HttpResponse:
    digest = request.POST.get("digest", "")
    return run_file_action(
        request, key, lambda file: revert_file(file, digest=digest, by=request.actor), _("Reverted")
    )


@require_permission(EDIT, Reviewed(gettext_lazy("Ignore")))
@require_POST
def ignore(request: WorkspaceRequest, key: int) -> HttpResponse:
    return run_file_action(
        request,
        key,
        lambda file: ignore_file(file, by=request.actor),
        _("Ignored"),
        undo_route="unignore",
    )


@require_permission(EDIT, Reviewed())
@require_POST
def unignore(request: WorkspaceRequest, key: int) -> HttpResponse:
    return run_file_action(
        request,
        key,
        lambda file: unignore_file(file, by=request.actor),
        _("No longer ignored"),
        undo_route="ignore",
    )


@require_permission(APPROVE, Reviewed(gettext_lazy("Allow")))
@require_POST
def waive(request: WorkspaceRequest, key: int) -> HttpResponse:
    file = get_requested_file(request, key)
    form = WaiverForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            waive_findings(file, **values, by=request.actor)
        except InvalidInput as error:
            form.add_service_errors(error)
        except DomainError as error:
            messages.error(request, error.message)
            return redirect(file_url(file))
        else:
            messages.success(
                request,
                _("%(path)s allowed until %(day)s.")
                % {"day": f"{values['until']:%d %b %Y}", "path": file.path},
            )
            return redirect(file_url(file))
    page = build_file_page(request, file, waiver_form=form)
    return render(request, "skills/files/detail.html", page, status=422)


@require_permission(APPROVE, Reviewed())
@require_POST
def revoke_waiver(request: WorkspaceRequest, key: int, waiver: int) -> HttpResponse:
    file = get_requested_file(request, key)
    row = get_object_or_404(list_waivers(file).select_related("file__source"), pk=waiver)
    end_waiver(row, by=request.actor)
    messages.success(request, _("Exception ended."))
    return redirect(file_url(file))


@require_permission(EDIT, Reviewed())
@require_POST
def assign(request: WorkspaceRequest, key: int) -> HttpResponse:
    file = get_requested_skill(request, key)
    form = AssignmentForm(request.POST, workspace=request.workspace)
    if not form.is_valid():
        page = build_file_page(request, file, assignment_form=form)
        return render(request, "skills/files/detail.html", page, status=422)
    values = form.cleaned_data
    assign_skill_file(file, values["assigned_to"], values["agents"], by=request.actor)
    messages.success(request, _("Agents for “%(name)s” saved.") % {"name": file.name or file.path})
    return redirect(file_url(file))


def export(request: WorkspaceRequest, key: int) -> HttpResponseBase:
    """Send a skill as a zip archive that contains the skill's folder."""
    file = get_requested_skill(request, key)
    folder = get_skill_folder(file)
    if folder is None:
        raise Http404("Its text was erased.")
    if revision := file.active or file.latest:
        check_download_permission(request, revision)
    name, files = folder
    return download_response(write_zip(files), f"{name}.zip", "application/zip")


# --- helpers -------------------------------------------------------------------------------------------


def get_requested_file(request: WorkspaceRequest, key: int) -> ContextFile:
    rows = list_context_files(request.workspace)
    contents = ("latest__content", "approved__content", "active__content")
    return get_object_or_404(rows.select_related("source__workspace", *contents), pk=key)


def check_download_permission(request: WorkspaceRequest, revision: FileRevision) -> None:
    if get_revision_text(revision).is_masked and not has_permission(request.membership.role, APPROVE):
        raise PermissionDenied(describe_required_roles(APPROVE))


def get_requested_skill(request: WorkspaceRequest, key: int) -> ContextFile:
    file = get_requested_file(request, key)
    if file.file_kind != "skill":
        raise Http404("Not a skill.")
    return file


def run_file_action(
    request: WorkspaceRequest,
    key: int,
    action: Callable[[ContextFile], object],
    message: str,
    undo_route: str = "",
) -> HttpResponse:
    """Run the action on the file and redirect with a message.

    `undo_route` is the route name of the opposite action, which the message offers as undo.
    """
    file = get_requested_file(request, key)
    back = get_back_url(request, file_url(file))
    try:
        action(file)
    except DomainError as error:
        messages.error(request, f"{file.path}: {error.message}")
    else:
        url = reverse(f"files:{undo_route}", args=[request.workspace.slug, file.pk]) if undo_route else ""
        add_toast(request, f"{message}: {file.path}.", undo_url=url, undo_fields={"back": back})
    return redirect(back)


def download_response(data: bytes, name: str, kind: str) -> HttpResponseBase:
    return FileResponse(BytesIO(data), as_attachment=True, filename=name, content_type=kind)


def file_url(file: ContextFile) -> str:
    return reverse("files:detail", args=[file.source.workspace.slug, file.pk])


urlpatterns: list[URLPattern] = [
    path("<int:key>/", detail, name="detail"),
    path("<int:key>/live/", live_file, name="live"),
    path("<int:key>/peek/", preview_changes, name="peek"),
    path("<int:key>/revisions/<int:number>/", revision_detail, name="revision"),
    path("<int:key>/revisions/<int:number>/raw/", download_revision, name="raw"),
    path("<int:key>/approve/", approve, name="approve"),
    path("<int:key>/reject/", revert, name="reject"),
    path("<int:key>/ignore/", ignore, name="ignore"),
    path("<int:key>/unignore/", unignore, name="unignore"),
    path("<int:key>/waive/", waive, name="waive"),
    path("<int:key>/waivers/<int:waiver>/end/", revoke_waiver, name="end-waiver"),
    path("<int:key>/assign/", assign, name="assign"),
    path("<int:key>/export/", export, name="export"),
]
urls = (urlpatterns, "files")
