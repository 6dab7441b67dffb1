"""Sources: their state, last run, schedule and progress."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.body_size import takes_up_to
from personas.errors import DomainError
from personas.records.services import Values, restore_record
from personas.records.views import PAGE_SIZE, RecordPages, posted
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from skills.archives import read_zip
from skills.models import FileState, RefreshRun, Source, SourceKind
from skills.refresh.runs import Progress, progress_of, refusals_of, request_refresh
from skills.refresh.source_changes import add_source, look_anew
from skills.sources.forms import MOST_ZIP_BYTES, SourceForm, UploadForm
from skills.sources.selectors import (
    files_of,
    grants_of,
    pushed_count,
    readers_by_source,
    sources_of,
    states_of,
    summaries_of,
)
from skills.tasks import dispatch
from skills.uploads.services import BadBundle, push_bundle

# The archive, and what a form puts around it.
UPLOAD_BYTES = MOST_ZIP_BYTES + 64 * 1024


class SourcePages(RecordPages[Source]):
    model, form = Source, SourceForm
    one, many = gettext_lazy("source"), gettext_lazy("Sources")
    name, icon, templates = "sources", "source", "skills/sources"
    lede = gettext_lazy(
        "Where context files and skills are found: folders that workers read, or files pushed here."
    )
    searched = ("label", "slug", "folder", "grant__path")
    write = Permission.MANAGE_SOURCES
    # What an edit does to prompts is known only after the look that follows it.
    feeds_prompts = False

    def rows(self, request: WorkspaceRequest) -> QuerySet[Source]:
        return sources_of(request.workspace)

    def more_urls(self) -> list[URLPattern]:
        return [
            path("<slug:key>/refresh/", posted(self.refresh), name="refresh"),
            path("<slug:key>/live/", self.live, name="live"),
            path("<slug:key>/upload/", posted(self.upload), name="upload"),
        ]

    # --- verbs ------------------------------------------------------------------------------------------

    def create(self, request: WorkspaceRequest, values: Values) -> Source:
        source, run = add_source(request.workspace, values, by=request.actor)
        dispatch(run)
        return source

    def save(self, request: WorkspaceRequest, record: Source) -> HttpResponse:
        answer = super().save(request, record)
        self.look_if_changed(request, record)
        return answer

    def revert(self, request: WorkspaceRequest, key: str, number: int) -> HttpResponse:
        record = self.find(request, key)
        answer = super().revert(request, key, number)
        self.look_if_changed(request, record)
        return answer

    def restore_verb(self, record: Source, request: WorkspaceRequest) -> Source:
        restored = restore_record(record, by=request.actor)
        dispatch(look_anew(restored, cause="edited", by=request.actor))
        return restored

    def look_if_changed(self, request: WorkspaceRequest, before: Source) -> None:
        after = self.find(request, before.slug)
        if after.revision != before.revision and not after.is_archived:
            dispatch(look_anew(after, cause="edited", by=request.actor))

    @needs(Permission.EDIT)
    def refresh(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        source = self.find(request, key)
        try:
            dispatch(request_refresh(source, cause="person", by=request.actor))
        except DomainError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, _("A look at “%(source)s” is on its way.") % {"source": source})
        return redirect(self.address(source))

    @takes_up_to(UPLOAD_BYTES)
    @needs(Permission.EDIT)
    def upload(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        source = self.find(request, key)
        form = UploadForm(request.POST, request.FILES)
        context: dict[str, Any] = {"record": source, "upload": form}
        if form.is_valid():
            try:
                run = self.push(request, source, form)
            except BadBundle as error:
                form.add_error("archive", error.message)
                context["refusals"] = [one for one in error.refusals if one.path != "."]
            except DomainError as error:
                messages.error(request, error.message)
                return redirect(self.address(source))
            else:
                return self.say_pushed(request, run)
        return self.show(request, "upload", context, status=422)

    def push(self, request: WorkspaceRequest, source: Source, form: UploadForm) -> RefreshRun:
        bundle = read_zip(form.cleaned_data["archive"])
        run = push_bundle(source, bundle, replace=form.cleaned_data["replace"], by=request.actor)
        dispatch(run)
        return run

    def say_pushed(self, request: WorkspaceRequest, run: RefreshRun) -> HttpResponse:
        if run.refused:
            words = _("Pushed, but for %(count)s refused: see below.")
            messages.warning(request, words % {"count": f"{run.refused:,}"})
        else:
            messages.success(request, _("Pushed. A look at the files is on its way."))
        return redirect(self.address(run.source))

    # --- what pages show --------------------------------------------------------------------------------

    def show(
        self, request: WorkspaceRequest, page: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        if page == "list":
            context["page"].object_list = summaries_of(request.workspace, context["page"].object_list)
        if page in {"list", "form"}:
            context["has_grants"] = grants_of(request.workspace).exists()
        return super().show(request, page, context, status)

    def users(self, record: Source) -> Any:
        """Shown with their folders and rules instead, see below."""
        return ()

    def detail_context(self, request: WorkspaceRequest, record: Source) -> dict[str, Any]:
        readers = readers_by_source(request.workspace)[record.pk]
        shown = self.parts(request, record, progress_of(record))
        return shown | {"readers": readers, "upload": UploadForm()}

    def live(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        """The parts that change while a worker looks; nothing while the page is up to date."""
        source = self.find(request, key)
        progress = progress_of(source)
        asked = request.GET.copy()
        seen, ended = (asked.pop(name, [""])[-1] for name in ("seen", "ended"))
        if seen == progress.signature:
            return HttpResponse(status=204)
        # What is left is the page's own address, which its links are made from.
        request.GET = asked  # type: ignore[assignment]  # a copy of the same kind
        context = self.parts(request, source, progress) | {"record": source}
        context |= {"is_partial": True, "is_over": ended != progress.ended_pk}
        return render(request, "skills/sources/_live.html", context)

    def parts(self, request: WorkspaceRequest, source: Source, progress: Progress) -> dict[str, Any]:
        """What both the page and its live parts show."""
        said = request.GET.get("state", "")
        state = said if said in FileState.values else ""
        return {
            "progress": progress,
            "refusals": refusals_of(progress),
            "states": states_of(request.workspace, [source])[source.pk],
            "state": state,
            "files": Paginator(files_of(source, state), PAGE_SIZE).get_page(request.GET.get("page")),
            "pushed": pushed_count(source) if source.source_kind == SourceKind.PUSHED else None,
            "live_url": reverse("sources:live", args=[request.workspace.slug, source.slug]),
        }


urls = SourcePages().urls()
