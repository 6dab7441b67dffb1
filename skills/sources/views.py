"""Pages for sources: status, last runs, schedule, live progress and upload."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.body_size import allow_body_size
from personas.errors import DomainError
from personas.limits.storage_quota import CallQuotaExceeded
from personas.records.services import FieldValues, restore_record
from personas.records.views import PAGE_SIZE, RecordPages, post_only
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.responses import get_back_url
from personas.ui.review import Automatic
from skills.archives import read_zip
from skills.models import FileStatus, RefreshRun, Source, SourceKind
from skills.refresh.holds import confirm_removal
from skills.refresh.runs import RefreshProgress, get_refresh_progress, list_run_refusals, request_refresh
from skills.refresh.source_changes import add_source, rescan_source
from skills.sources.forms import MAX_ZIP_BYTES, SourceForm, UploadForm
from skills.sources.selectors import (
    count_pushed_files,
    count_statuses_by_source,
    get_readers_by_source,
    get_source_hold,
    list_allowed_folders,
    list_source_files,
    list_source_summaries,
    list_sources,
)
from skills.tasks import enqueue_refresh_run
from skills.uploads.services import InvalidBundle, push_bundle

# The size of the archive, plus 64 KiB for the other parts of the multipart request.
MAX_UPLOAD_BYTES = MAX_ZIP_BYTES + 64 * 1024
SCANNED = Automatic("a worker scans the source; only its automatic approval lets files into prompts at once")


class SourcePages(RecordPages[Source]):
    model, form = Source, SourceForm
    one, many = gettext_lazy("source"), gettext_lazy("Sources")
    name, icon, templates = "sources", "source", "skills/sources"
    lede = gettext_lazy(
        "Where context files and skills come from: allowed folders on the server, or pushed files."
    )
    search_fields = ("name", "slug", "folder", "allowed_folder__path")
    write_permission = Permission.MANAGE_SOURCES
    # No impact preview: the effect of an edit on prompts is known only after the refresh that follows it.
    feeds_prompts = False

    def rows(self, request: WorkspaceRequest) -> QuerySet[Source]:
        return list_sources(request.workspace)

    def more_urls(self) -> list[URLPattern]:
        return [
            path("<slug:key>/refresh/", post_only(self.refresh), name="refresh"),
            path("<slug:key>/confirm-removal/", post_only(self.confirm_removal), name="confirm-removal"),
            path("<slug:key>/live/", self.live, name="live"),
            path("<slug:key>/upload/", post_only(self.upload), name="upload"),
        ]

    # --- actions ----------------------------------------------------------------------------------------

    @transaction.atomic
    def create(self, request: WorkspaceRequest, values: FieldValues) -> Source:
        source, run = add_source(request.workspace, values, by=request.actor)
        enqueue_refresh_run(run)
        return source

    @transaction.atomic
    def save(self, request: WorkspaceRequest, record: Source) -> HttpResponse:
        response = super().save(request, record)
        self.rescan_if_changed(request, record)
        return response

    @transaction.atomic
    def revert(self, request: WorkspaceRequest, key: str, number: int) -> HttpResponse:
        record = self.find(request, key)
        response = super().revert(request, key, number)
        self.rescan_if_changed(request, record)
        return response

    @transaction.atomic
    def apply_restore(self, record: Source, request: WorkspaceRequest) -> Source:
        restored = restore_record(record, by=request.actor)
        enqueue_refresh_run(rescan_source(restored, cause="edited", by=request.actor))
        return restored

    def rescan_if_changed(self, request: WorkspaceRequest, before: Source) -> None:
        after = self.find(request, before.slug)
        if after.revision != before.revision and not after.is_archived:
            enqueue_refresh_run(rescan_source(after, cause="edited", by=request.actor))

    @require_permission(Permission.EDIT, SCANNED)
    def refresh(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        source = self.find(request, key)
        try:
            enqueue_refresh_run(request_refresh(source, cause="person", by=request.actor))
        except DomainError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, _("Started refreshing “%(source)s”.") % {"source": source})
        return redirect(get_back_url(request, self.get_record_url(source)))

    @require_permission(Permission.EDIT, SCANNED)
    def confirm_removal(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        source = self.find(request, key)
        run = request.POST.get("run", "")
        is_number = run.isdecimal() and run.isascii() and len(run) < 16
        try:
            enqueue_refresh_run(confirm_removal(source, int(run) if is_number else 0, by=request.actor))
        except DomainError as error:
            messages.error(request, error.message)
        else:
            message = _("Removal confirmed. “%(source)s” is being refreshed.")
            messages.success(request, message % {"source": source})
        return redirect(get_back_url(request, self.get_record_url(source)))

    @allow_body_size(MAX_UPLOAD_BYTES)
    @require_permission(Permission.EDIT, SCANNED)
    def upload(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        source = self.find(request, key)
        form = UploadForm(request.POST, request.FILES)
        context: dict[str, Any] = {"record": source, "upload": form}
        if form.is_valid():
            try:
                run = self.push(request, source, form)
            except InvalidBundle as error:
                form.add_error("archive", error.message)
                context["refusals"] = [refusal for refusal in error.refusals if refusal.path != "."]
            except CallQuotaExceeded as error:
                form.add_error("archive", error.message)
                return self.render_page(request, "upload", context, status=429)
            except DomainError as error:
                messages.error(request, error.message)
                return redirect(self.get_record_url(source))
            else:
                return self.redirect_after_push(request, run)
        return self.render_page(request, "upload", context, status=422)

    def push(self, request: WorkspaceRequest, source: Source, form: UploadForm) -> RefreshRun:
        bundle = read_zip(form.cleaned_data["archive"])
        run = push_bundle(source, bundle, replace=form.cleaned_data["replace"], by=request.actor)
        enqueue_refresh_run(run)
        return run

    def redirect_after_push(self, request: WorkspaceRequest, run: RefreshRun) -> HttpResponse:
        if run.refused:
            message = _("Files pushed, but some were rejected (%(count)s). See below.")
            messages.warning(request, message % {"count": f"{run.refused:,}"})
        else:
            messages.success(request, _("Files pushed. They are being scanned."))
        return redirect(self.get_record_url(run.source))

    # --- page context -----------------------------------------------------------------------------------

    def render_page(
        self, request: WorkspaceRequest, page: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        if page == "list":
            context["page"].object_list = list_source_summaries(
                request.workspace, context["page"].object_list
            )
        if page in {"list", "form"}:
            context["has_allowed_folders"] = list_allowed_folders(request.workspace).exists()
        return super().render_page(request, page, context, status)

    def list_using_agents(self, record: Source) -> Any:
        """Return no agents: the detail page lists them as readers, with working directory and rules."""
        return ()

    def detail_context(self, request: WorkspaceRequest, record: Source) -> dict[str, Any]:
        readers = get_readers_by_source(request.workspace)[record.pk]
        context = self.live_context(request, record, get_refresh_progress(record))
        return context | {"readers": readers, "upload": UploadForm()}

    def live(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        """Render the parts of the page that change during a refresh. Answer 204 if the page is up to date."""
        source = self.find(request, key)
        progress = get_refresh_progress(source)
        query = request.GET.copy()
        known_signature, known_finished = (query.pop(name, [""])[-1] for name in ("seen", "ended"))
        if known_signature == progress.signature:
            return HttpResponse(status=204)
        # Without `seen` and `ended`, only the page's own parameters remain. Its links are built from them.
        request.GET = query  # type: ignore[assignment]  # a copy of the same kind
        context = self.live_context(request, source, progress) | {"record": source}
        context |= {"is_partial": True, "is_over": known_finished != progress.last_finished_pk}
        return render(request, "skills/sources/_live.html", context)

    def live_context(
        self, request: WorkspaceRequest, source: Source, progress: RefreshProgress
    ) -> dict[str, Any]:
        """Build the context that the page and its live parts share."""
        requested_status = request.GET.get("status", "")
        status = requested_status if requested_status in FileStatus.values else ""
        return {
            "progress": progress,
            "refusals": list_run_refusals(progress),
            "hold": None if source.is_archived else get_source_hold(source),
            "statuses": count_statuses_by_source(request.workspace, [source])[source.pk],
            "status": status,
            "files": Paginator(list_source_files(source, status), PAGE_SIZE).get_page(
                request.GET.get("page")
            ),
            "pushed": count_pushed_files(source) if source.source_kind == SourceKind.PUSHED else None,
            "live_url": reverse("sources:live", args=[request.workspace.slug, source.slug]),
        }


urls = SourcePages().urls()
