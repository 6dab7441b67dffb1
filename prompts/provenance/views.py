"""In which prompts a record or file is now, and was before."""

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from personas.tenancy.middleware import WorkspaceRequest
from prompts.assembly.segments import Origin
from prompts.page_lookup import bounded
from prompts.provenance.origins import record_of, told_of
from prompts.provenance.usage import holdings_in, prompts_holding

PAGE_SIZE = 25


def holding(request: WorkspaceRequest, kind: str, key: int) -> HttpResponse:
    record = record_of(request.workspace, kind, bounded(key))
    if record is None:
        raise Http404("No such record.")
    rows = prompts_holding(request.workspace, kind, key)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    origin = Origin(kind, str(key))
    context = {
        "record": record,
        "told": told_of(request.workspace, [origin])[origin],
        "page": page,
        "holdings": holdings_in(request.workspace, kind, key, list(page.object_list)),
    }
    return render(request, "prompts/versions/holding.html", context)


urlpatterns: list[URLPattern] = [path("<slug:kind>/<int:key>/", holding, name="record")]
urls = (urlpatterns, "holdings")
