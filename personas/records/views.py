"""Pages shared by all records: list, detail, new, edit, archive, restore, history."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ClassVar, Generic, TypeVar

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from core.db.fields import FORBIDDEN_CHARACTERS, LINE_BREAKS
from personas.errors import DomainError, EditConflict, InvalidInput
from personas.models import Record
from personas.records.bulk_views import RecordBulkMixin, get_bulk_label
from personas.records.conflict_views import describe_conflict
from personas.records.forms import RecordForm
from personas.records.list_views import ARCHIVE_STATE_CHOICES, PAGE_SIZE, RecordListMixin, get_query_param
from personas.records.revision_display import compare_revisions, list_revision_fields
from personas.records.services import (
    FieldValues,
    archive_record,
    create_record,
    edit_record,
    restore_record,
    restore_revision,
)
from personas.roles import Permission, has_permission
from personas.selectors import list_agents_using, list_revisions
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import REVERT_REVIEW, ReviewDeclaration, Reviewed
from personas.ui.toasts import add_toast

R = TypeVar("R", bound=Record)
PageView = Callable[..., HttpResponseBase]
MAX_MESSAGE_LENGTH = 200
__all__ = [
    "ARCHIVE_STATE_CHOICES",
    "PAGE_SIZE",
    "RecordPages",
    "get_base_revision",
    "get_change_message",
    "get_query_param",
    "post_only",
]


class RecordPages(RecordListMixin[R], RecordBulkMixin[R], Generic[R]):
    """Base class of the pages of one kind of record. Subclasses set class attributes and override hooks."""

    model: type[R]
    form: type[RecordForm]
    name: ClassVar[str]  # the URL path segment and the URL namespace
    one: ClassVar[str | Promise]  # the kind in singular and lower case, such as “agent”
    many: ClassVar[str | Promise]  # the kind in plural as a page title, such as “Agents”
    icon: ClassVar[str]
    lede: ClassVar[str | Promise]
    templates: ClassVar[str]
    converter: ClassVar[str] = "slug"
    write_permission: ClassVar[Permission] = Permission.EDIT
    # Whether an edit can change prompts. If so, the form shows a preview of the affected prompts.
    feeds_prompts: ClassVar[bool] = True
    # The query parameter of the agent list that selects the agents using a record of this kind.
    usage_param: ClassVar[str] = ""
    # Whether members can create records of this kind on these pages.
    has_new_page: ClassVar[bool] = True
    archive_label: ClassVar[str | Promise] = gettext_lazy("Archive")
    archived_label: ClassVar[str | Promise] = gettext_lazy("Archived")
    restore_label: ClassVar[str | Promise] = gettext_lazy("Restore")

    # --- hooks ------------------------------------------------------------------------------------------

    def create(self, request: WorkspaceRequest, values: FieldValues) -> R:
        return create_record(self.model, request.workspace, values, by=request.actor)

    def apply_archive(self, record: R, request: WorkspaceRequest) -> R:
        return archive_record(record, by=request.actor)

    def apply_restore(self, record: R, request: WorkspaceRequest) -> R:
        return restore_record(record, by=request.actor)

    def detail_context(self, request: WorkspaceRequest, record: R) -> dict[str, Any]:
        return {}

    def get_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        """Return initial values for the form of a new record; subclasses read them from the query string."""
        return {}

    def get_edit_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        """Return values that the form of an existing record shows instead of the stored ones."""
        return {}

    def more_urls(self) -> list[URLPattern]:
        return []

    # --- pages ------------------------------------------------------------------------------------------

    def detail(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        record = self.find(request, key)
        revisions = list(list_revisions(record).defer("data")[:5])
        context = {"record": record, "revisions": revisions, "agents": self.list_using_agents(record)}
        context["used_url"] = self.get_usage_url(record)
        return self.render_page(request, "detail", context | self.detail_context(request, record))

    def new(self, request: WorkspaceRequest) -> HttpResponse:
        form = self.form(request.POST or None, workspace=request.workspace, initial=self.get_initial(request))
        if request.method == "POST" and form.is_valid():
            try:
                record = self.create(request, form.values())
            except InvalidInput as error:
                form.add_service_errors(error)
            else:
                messages.success(
                    request,
                    _("%(kind)s “%(record)s” created.")
                    % {"kind": str(self.one).capitalize(), "record": record},
                )
                return redirect(self.get_created_url(request, record))
        return self.render_page(request, "form", {"form": form}, status=422 if form.errors else 200)

    def edit(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        record = self.find(request, key)
        if request.method != "POST":
            initial = self.get_edit_initial(request)
            form = self.form(workspace=request.workspace, record=record, initial=initial)
            return self.render_page(request, "form", {"form": form, "record": record})
        return self.save(request, record)

    def save(self, request: WorkspaceRequest, record: R) -> HttpResponse:
        form = self.form(request.POST, workspace=request.workspace, record=record)
        context: dict[str, Any] = {"form": form, "record": record}
        if not form.is_valid():
            return self.render_page(request, "form", context, status=422)
        try:
            saved = edit_record(
                record,
                form.values(),
                expected=get_base_revision(request, form),
                by=request.actor,
                message=get_change_message(request, "change_message"),
            )
        except InvalidInput as error:
            form.add_service_errors(error)
            return self.render_page(request, "form", context, status=422)
        except EditConflict as conflict:
            context["conflict"] = describe_conflict(conflict, form)
            return self.render_page(request, "form", context, status=409)
        unchanged = saved.revision == form.cleaned_data["revision"]
        messages.success(
            request, _("Nothing changed.") if unchanged else _("“%(record)s” saved.") % {"record": saved}
        )
        return redirect(self.get_record_url(saved))

    def archive(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        return self.run_action(request, key, self.apply_archive, str(self.archived_label), undo="restore")

    def restore(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        return self.run_action(request, key, self.apply_restore, _("Restored"), undo="archive")

    def history(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        record = self.find(request, key)
        page = Paginator(list_revisions(record), PAGE_SIZE).get_page(request.GET.get("page"))
        return self.render_page(request, "history", {"record": record, "page": page})

    def revision(self, request: WorkspaceRequest, key: str, number: int) -> HttpResponse:
        record = self.find(request, key)
        revision = get_object_or_404(list_revisions(record), number=number)
        against = get_query_param(request, "against")
        is_number = against.isascii() and against.isdecimal() and len(against) < 10
        earlier = list_revisions(record).filter(number=int(against) if is_number else number - 1).first()
        changes = compare_revisions(record, earlier.data, revision.data) if earlier else []
        context = {
            "record": record,
            "revision": revision,
            "earlier": earlier,
            "changes": changes,
            "is_split": get_query_param(request, "view") == "split",
            "other_numbers": list_revisions(record)
            .exclude(number=number)
            .values_list("number", flat=True)[:50],
        }
        return self.render_page(
            request, "revision", context | {"content": list_revision_fields(record, revision.data)}
        )

    def revert(self, request: WorkspaceRequest, key: str, number: int) -> HttpResponse:
        if not list_revisions(self.find(request, key)).filter(number=number).exists():
            raise Http404("Revision not found.")

        def apply_revert(record: R, request: WorkspaceRequest) -> R:
            return restore_revision(
                record, number, expected=get_undo_revision(request, record), by=request.actor
            )

        return self.run_action(
            request, key, apply_revert, _("Revision %(number)s restored") % {"number": number}, undo="revert"
        )

    # --- helpers ----------------------------------------------------------------------------------------

    def require_write(self, view: PageView, review: ReviewDeclaration) -> PageView:
        """Wrap a view so that it requires the write permission of this kind."""

        @wraps(view)
        def guarded(request: WorkspaceRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            return view(request, *args, **kwargs)

        return require_permission(self.write_permission, review)(self.require_recent_sign_in(guarded))

    def require_recent_sign_in(self, view: PageView) -> PageView:
        """Hook: wrap a view that writes, if some of its requests need a recent sign-in."""
        return view

    def find(self, request: WorkspaceRequest, key: str) -> R:
        return get_object_or_404(self.rows(request), **{self.key: key})

    def get_record_url(self, record: R, page: str = "detail") -> str:
        return reverse(f"{self.name}:{page}", args=self.get_url_args(record))

    def get_created_url(self, request: WorkspaceRequest, record: R) -> str:
        """Return the page that follows the creation of a record: its own."""
        return self.get_record_url(record)

    def get_url_args(self, record: R) -> list[Any]:
        """Return the arguments for `reverse` that identify a record: workspace slug and record key."""
        return [record.workspace.slug, getattr(record, self.key)]

    def get_new_url(self, request: WorkspaceRequest) -> str:
        return reverse(f"{self.name}:new", args=[request.workspace.slug])

    def get_impact_url(self, request: WorkspaceRequest, record: R | None) -> str:
        """Return the URL that previews which prompts an edit changes; empty for kinds not used in prompts."""
        if not self.feeds_prompts:
            return ""
        args = [request.workspace.slug, self.name]
        if record is None:
            return reverse("impact:new", args=args)
        return reverse("impact:edit", args=[*args, getattr(record, self.key)])

    def get_usage_url(self, record: R) -> str:
        """Return the URL of the list of agents that use this record; empty if `usage_param` is not set."""
        if not self.usage_param:
            return ""
        agents = reverse("agents:list", args=[record.workspace.slug])
        return f"{agents}?{urlencode({self.usage_param: getattr(record, self.key)})}"

    def list_using_agents(self, record: R) -> Any:
        """List up to 13 agents that use the record. The page shows 12; a 13th means that there are more."""
        return list(list_agents_using(record)[:13])

    def run_action(
        self,
        request: WorkspaceRequest,
        key: str,
        action: Callable[[R, WorkspaceRequest], R],
        done_label: str,
        undo: str = "",
    ) -> HttpResponse:
        """Run an action on a record, then redirect to the record with a success or error message.

        `undo` is the name of the opposite action, which the undo button of the message runs.
        """
        record = result = self.find(request, key)
        try:
            result = action(record, request)
        except DomainError as error:
            messages.error(request, error.message)
        else:
            fields = {"expected": str(result.revision)}
            undo_url = self.get_undo_url(request, record, undo)
            text = _("%(done)s: “%(record)s”.") % {"done": done_label, "record": record}
            add_toast(request, text, undo_url=undo_url, undo_fields=fields)
        return redirect(self.get_record_url(result))

    def get_undo_url(self, request: WorkspaceRequest, before: R, undo: str) -> str:
        """Return the URL that undoes an action, or an empty string if it cannot be undone.

        `before` is the record before the action, and `undo` is the name of the opposite action.
        """
        if not undo or not has_permission(request.membership.role, self.write_permission):
            return ""
        if undo == "revert":
            return reverse(f"{self.name}:revert", args=[*self.get_url_args(before), before.revision])
        # Archiving an archived record, or restoring an active one, changed nothing that could be undone.
        return self.get_record_url(before, undo) if before.is_archived == (undo == "archive") else ""

    def render_page(
        self, request: WorkspaceRequest, page: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        names = [f"{self.templates}/{page}.html", f"personas/records/{page}.html"]
        if page == "form":
            context["impact_url"] = self.get_impact_url(request, context.get("record"))
        can_write = has_permission(request.membership.role, self.write_permission)
        context |= {
            "pages": self,
            "can_write": can_write,
            "list_url": reverse(f"{self.name}:list", args=[request.workspace.slug]),
        }
        if page == "list":
            context["bulk"] = self.list_bulk_buttons(request, context.get("filters", []))
        if record := context.get("record"):
            context["urls"] = {
                page: self.get_record_url(record, page) for page in ("detail", "edit", "history")
            }
        return render(request, names, context, status=status)

    def urls(self) -> tuple[list[URLPattern], str]:
        """Return all URL patterns and their namespace, as Django's `include` expects them."""
        one = f"<{self.converter}:key>/"
        write, bulk_review = self.require_write, Reviewed(partial(get_bulk_label, self.bulk_actions))
        routes = [
            path("", self.index, name="list"),
            path("new/", write(self.new, Reviewed(gettext_lazy("Create"))), name="new"),
            # This URL is unambiguous even if a record has the key `all`: records have no `bulk` page.
            *(
                [path("all/bulk/", post_only(write(self.bulk, bulk_review)), name="bulk")]
                if self.bulk_actions
                else []
            ),
            *self.more_urls(),
            path(one, self.detail, name="detail"),
            path(f"{one}edit/", write(self.edit, Reviewed(has_message=True)), name="edit"),
            path(
                f"{one}archive/", post_only(write(self.archive, Reviewed(self.archive_label))), name="archive"
            ),
            path(
                f"{one}restore/", post_only(write(self.restore, Reviewed(self.restore_label))), name="restore"
            ),
            path(f"{one}history/", self.history, name="history"),
            path(f"{one}history/<int:number>/", self.revision, name="revision"),
            path(
                f"{one}history/<int:number>/restore/",
                post_only(write(self.revert, REVERT_REVIEW)),
                name="revert",
            ),
        ]
        return routes, self.name


def get_change_message(request: WorkspaceRequest, field: str = "message") -> str:
    """Return the change message as one line without control characters, cut to the maximum length."""
    line = LINE_BREAKS.sub(" ", request.POST.get(field, ""))
    return FORBIDDEN_CHARACTERS.sub("", line).strip()[:MAX_MESSAGE_LENGTH]


def post_only(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Restrict a view to POST. The permission that `require_permission` has set on the view is kept."""
    return require_POST(view)


def get_undo_revision(request: WorkspaceRequest, record: Record) -> int:
    """Return the revision number that the record must have for an old revision to be restored.

    An undo button sends the revision that it undoes, so that a later change by another user causes an edit
    conflict instead of being lost. The revision page sends no number; the current revision is used.
    """
    value = request.POST.get("expected", "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else record.revision


def get_base_revision(request: WorkspaceRequest, form: RecordForm) -> int:
    """Return the revision number that the edit is based on.

    After an edit conflict, this is the revision of the other user that the user decided to overwrite.
    """
    value = request.POST.get("overwrite", "")
    if value.isdecimal() and len(value) < 10:
        return int(value)
    return form.cleaned_data["revision"] or 0
