"""The labels of a workspace: which there are, and who may move them."""

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

from personas.errors import DomainError, Invalid
from personas.records.list_views import PAGE_SIZE, chosen_filters, search_words
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.export import Column, columns_of, file_answer, file_asked
from personas.ui.sorting import Sorting, sorting_asked
from prompts.labels.selectors import labelled
from prompts.labels.services import protect_label
from prompts.models import LATEST
from prompts.releases.forms import ProtectForm
from prompts.releases.selectors import LabelInUse, labels_in_use

SORTS = {"label": ("name",), "prompts": ("prompts",)}
WHO = [("", _("Whoever moves them")), ("owners", _("Moved by owners only")), ("open", _("Not protected"))]
COLUMNS = columns_of(("name", "prompts", "is_protected"))
PROMPT_COLUMNS = [
    Column(name, itemgetter(name))
    for name in ("agent_name", "channel_name", "version_number", "version_tokens", "since")
]


def index(request: WorkspaceRequest) -> HttpResponseBase:
    words, sorting = search_words(request), sorting_asked(request, SORTS)
    who = {"name": "who", "label": _("Who moves it"), "options": WHO}
    filters = chosen_filters(request, [who])
    labels = found_labels(labels_in_use(request.workspace), words, filters[0]["value"], sorting)
    if file_format := file_asked(request):
        return file_answer(request.workspace, "labels", file_format, COLUMNS, labels)
    is_narrowed = bool(words or filters[0]["value"])
    context = {
        "page": Paginator(labels, PAGE_SIZE).get_page(request.GET.get("page")),
        "q": words,
        "filters": filters,
        "sorting": sorting,
        "is_narrowed": is_narrowed,
        "form": ProtectForm(),
    }
    return render(request, "prompts/labels/list.html", context)


def found_labels(labels: list[LabelInUse], words: str, who: str, sorting: Sorting) -> list[LabelInUse]:
    """A workspace has few labels, so they are sorted out here."""
    found = [label for label in labels if words.lower() in label.name]
    if who:
        found = [label for label in found if label.is_protected == (who == "owners")]
    if sorting.name:
        found.sort(key=attrgetter(SORTS[sorting.name][0]), reverse=sorting.is_down)
    return found


def prompts(request: WorkspaceRequest, label: str) -> HttpResponseBase:
    """Where one label stands."""
    known = next((one for one in labels_in_use(request.workspace) if one.name == label), None)
    if known is None and label != LATEST:
        raise Http404("No such label.")
    words = search_words(request)
    rows = labelled(request.workspace, label, words)
    if file_format := file_asked(request):
        return file_answer(request.workspace, f"label-{label}", file_format, PROMPT_COLUMNS, rows)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"label": label, "known": known, "page": page, "q": words, "is_narrowed": bool(words)}
    return render(request, "prompts/labels/prompts.html", context)


@needs(Permission.MANAGE_MEMBERS)
@require_POST
def protect(request: WorkspaceRequest) -> HttpResponse:
    form = ProtectForm(request.POST)
    if not form.is_valid():
        messages.error(request, gettext("A label has a name of at most 40 characters."))
        return redirect("labels:list", request.workspace.slug)
    label, is_protected = form.cleaned_data["label"], form.cleaned_data["protected"]
    try:
        protect_label(request.workspace, label, is_protected, by=request.actor)
    except Invalid as error:
        messages.error(request, " ".join(said for words in error.errors.values() for said in words))
    except DomainError as error:
        messages.error(request, error.message)
    else:
        said = (
            gettext("“%(label)s”: only owners move it.")
            if is_protected
            else gettext("“%(label)s”: everybody who edits may move it again.")
        )
        messages.success(request, said % {"label": label})
    return redirect("labels:list", request.workspace.slug)


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("protect/", protect, name="protect"),
    path("<slug:label>/prompts/", prompts, name="prompts"),
]
urls = (urlpatterns, "labels")
