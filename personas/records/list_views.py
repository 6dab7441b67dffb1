"""Record lists: search, filters, sorting and pagination, as a page or as an export."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from django.core.paginator import Paginator
from django.db.models import ForeignKey, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from personas.models import Record
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.export import ExportColumn, build_export_columns, build_export_response, get_export_format
from personas.ui.sorting import SortFields, SortOrder, get_sort_order, sort_rows

R = TypeVar("R", bound=Record)
PAGE_SIZE = 50
ARCHIVE_STATE_CHOICES = [("", _("Active")), ("archived", _("Archived")), ("all", _("All"))]
DATE_FIELDS = ("created_at", "updated_at", "archived_at")


@dataclass(frozen=True)
class RecordListing(Generic[R]):
    """The filtered and sorted rows of a list, with the filters, search text and sort order that were used.

    The list page and the export both use it.
    """

    rows: QuerySet[R]
    filters: list[dict[str, Any]]
    query: str
    sorting: SortOrder
    # Active filters that have no select box. Each is shown as a chip with a URL that removes the filter.
    chips: list[dict[str, str]] = field(default_factory=list)

    @property
    def chosen(self) -> dict[str, str]:
        return {entry["name"]: entry["value"] for entry in self.filters}

    @property
    def is_narrowed(self) -> bool:
        return bool(self.query or self.chips) or any(
            entry["value"] != str(entry["options"][0][0]) for entry in self.filters
        )


class RecordListMixin(Generic[R]):
    """List view of a record page class; subclasses set search fields, filters and sort orders."""

    model: type[R]
    name: ClassVar[str]
    key: ClassVar[str] = "slug"
    search_fields: ClassVar[tuple[str, ...]] = ("name",)
    # `sorts` maps each value of the `sort` parameter to model fields; `default_sort` is one of its keys.
    sorts: ClassVar[SortFields] = {}
    default_sort: ClassVar[str] = ""
    # The exported columns as attribute paths such as `agent__slug`. Empty means the record's key, all its
    # content fields and its dates.
    export_fields: ClassVar[tuple[str, ...]] = ()

    def rows(self, request: WorkspaceRequest) -> QuerySet[R]:
        raise NotImplementedError

    def render_page(
        self, request: WorkspaceRequest, page: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        raise NotImplementedError

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        """Return the filters shown as select boxes. The first option of each is the default."""
        return [{"name": "shelf", "label": _("Show"), "options": ARCHIVE_STATE_CHOICES}]

    def filter_rows(self, rows: QuerySet[R], chosen: dict[str, str]) -> QuerySet[R]:
        state = chosen.get("shelf", "")
        return rows if state == "all" else rows.filter(archived_at__isnull=state != "archived")

    def search_rows(self, rows: QuerySet[R], query: str) -> QuerySet[R]:
        condition = Q()
        for name in self.search_fields:
            condition |= Q(**{f"{name}__icontains": query})
        return rows.filter(condition) if query else rows

    def get_listing(self, request: WorkspaceRequest) -> RecordListing[R]:
        filters, query = set_filter_values(request, self.filters(request)), get_search_query(request)
        rows = self.filter_rows(self.rows(request), {entry["name"]: entry["value"] for entry in filters})
        sorting = get_sort_order(request, self.sorts, self.default_sort)
        sorted_rows = sort_rows(self.search_rows(rows, query), sorting, self.sorts)
        return RecordListing(sorted_rows, filters, query, sorting)

    def index(self, request: WorkspaceRequest) -> HttpResponseBase:
        listing = self.get_listing(request)
        if file_format := get_export_format(request):
            return build_export_response(
                request.workspace, self.name, file_format, self.get_export_columns(), listing.rows
            )
        page = Paginator(listing.rows, PAGE_SIZE).get_page(request.GET.get("page"))
        context = {
            "page": page,
            "filters": listing.filters,
            "q": listing.query,
            "sorting": listing.sorting,
            "chips": listing.chips,
            "is_narrowed": listing.is_narrowed,
        }
        return self.render_page(request, "list", context)

    def get_export_columns(self) -> list[ExportColumn]:
        """Return the columns of an exported file."""
        return build_export_columns(
            self.export_fields or [self.key, *list_content_fields(self.model), *DATE_FIELDS]
        )


def list_content_fields(model: type[Record]) -> list[str]:
    """List the attribute names of the content fields; for a foreign key its id, such as `agent_id`."""
    fields = [field for field in model._meta.concrete_fields if field.name in model.content]
    return [field.attname if isinstance(field, ForeignKey) else field.name for field in fields]


def get_query_param(request: HttpRequest, name: str) -> str:
    """Return a query parameter without NUL characters: PostgreSQL rejects them even in a WHERE clause."""
    return request.GET.get(name, "").replace("\x00", "")


def get_search_query(request: HttpRequest) -> str:
    return get_query_param(request, "q").strip()[:200]


def set_filter_values(request: HttpRequest, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set the `value` of each filter from the query string. A value that is no option becomes the default."""
    for entry in filters:
        allowed = {str(value) for value, _label in entry["options"]}
        param = request.GET.get(entry["name"], "")
        entry["value"] = param if param in allowed else str(entry["options"][0][0])
    return filters


def build_filter_chip(request: HttpRequest, name: str, label: str, value: str) -> dict[str, str]:
    """Build the chip of an active filter that has no select box, with the URL that removes this filter."""
    params = [
        (param, str(param_value))
        for param, param_value in request.GET.items()
        if param not in {name, "page", "format"}
    ]
    return {"name": name, "label": label, "value": value, "url": f"{request.path}?{urlencode(params)}"}
