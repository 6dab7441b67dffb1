"""Pages for the labels of a workspace: list of labels, prompts that have a label, label protection."""

from operator import attrgetter, itemgetter

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError, InvalidInput
from personas.records.list_views import PAGE_SIZE, get_search_query, set_filter_values
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.export import ExportColumn, build_export_columns, build_export_response, get_export_format
from personas.ui.review import NotReviewed
from personas.ui.sorting import SortOrder, get_sort_order
from prompts.models import LATEST
from prompts.publishing.labels.selectors import list_labelled_prompts
from prompts.publishing.labels.services import protect_label
from prompts.publishing.releases.forms import LabelProtectionForm
from prompts.publishing.releases.selectors import LabelUsage, list_label_usage

SORT_FIELDS = {"label": ("name",), "prompts": ("prompts",)}
PROTECTION_FILTERS = [
    ("", _("Any protection")),
    ("owners", _("Owners only")),
    ("open", _("Not protected")),
]
LABEL_COLUMNS = build_export_columns(("name", "prompts", "is_protected"))
PROMPT_COLUMNS = [
    ExportColumn(name, itemgetter(name))
    for name in ("agent_name", "channel_name", "version_number", "version_tokens", "since")
]


def index(request: WorkspaceRequest) -> HttpResponseBase:
    query, sorting = get_search_query(request), get_sort_order(request, SORT_FIELDS)
    protection_filter = {"name": "who", "label": _("Can be moved by"), "options": PROTECTION_FILTERS}
    filters = set_filter_values(request, [protection_filter])
    labels = filter_labels(list_label_usage(request.workspace), query, filters[0]["value"], sorting)
    if file_format := get_export_format(request):
        return build_export_response(request.workspace, "labels", file_format, LABEL_COLUMNS, labels)
    is_narrowed = bool(query or filters[0]["value"])
    context = {
        "page": Paginator(labels, PAGE_SIZE).get_page(request.GET.get("page")),
        "q": query,
        "filters": filters,
        "sorting": sorting,
        "is_narrowed": is_narrowed,
        "form": LabelProtectionForm(),
    }
    return render(request, "prompts/labels/list.html", context)


def filter_labels(
    labels: list[LabelUsage], query: str, protection: str, sorting: SortOrder
) -> list[LabelUsage]:
    """Filter and sort labels. Done in Python, because a workspace has few labels."""
    matching = [label for label in labels if query.lower() in label.name]
    if protection:
        matching = [label for label in matching if label.is_protected == (protection == "owners")]
    if sorting.name:
        matching.sort(key=attrgetter(SORT_FIELDS[sorting.name][0]), reverse=sorting.is_descending)
    return matching


def label_prompts(request: WorkspaceRequest, label: str) -> HttpResponseBase:
    """List the prompts that have a label."""
    usage = next((one for one in list_label_usage(request.workspace) if one.name == label), None)
    if usage is None and label != LATEST:
        raise Http404("Label not found.")
    query = get_search_query(request)
    rows = list_labelled_prompts(request.workspace, label, query)
    if file_format := get_export_format(request):
        return build_export_response(request.workspace, f"label-{label}", file_format, PROMPT_COLUMNS, rows)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"label": label, "known": usage, "page": page, "q": query, "is_narrowed": bool(query)}
    return render(request, "prompts/labels/prompts.html", context)


@require_permission(Permission.MANAGE_MEMBERS, NotReviewed("protection of a label"))
@require_POST
def protect_label_view(request: WorkspaceRequest) -> HttpResponse:
    form = LabelProtectionForm(request.POST)
    if not form.is_valid():
        messages.error(request, gettext("Enter a label of at most 40 characters."))
        return redirect("labels:list", request.workspace.slug)
    label, is_protected = form.cleaned_data["label"], form.cleaned_data["protected"]
    try:
        protect_label(request.workspace, label, is_protected, by=request.actor)
    except InvalidInput as error:
        messages.error(request, " ".join(text for texts in error.errors.values() for text in texts))
    except DomainError as error:
        messages.error(request, error.message)
    else:
        message = (
            gettext("Only owners can now move “%(label)s”.")
            if is_protected
            else gettext("“%(label)s” is no longer protected.")
        )
        messages.success(request, message % {"label": label})
    return redirect("labels:list", request.workspace.slug)


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("protect/", protect_label_view, name="protect"),
    path("<slug:label>/prompts/", label_prompts, name="prompts"),
]
urls = (urlpatterns, "labels")
