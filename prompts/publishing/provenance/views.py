"""Page that lists the prompts in which a record or file is used now or was before."""

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from personas.tenancy.middleware import WorkspaceRequest
from prompts.assembly.segments import Origin
from prompts.page_lookup import check_url_number
from prompts.publishing.provenance.origins import describe_origins, find_record
from prompts.publishing.provenance.usage import list_prompts_with_record, list_record_usages

PAGE_SIZE = 25


def usage_detail(request: WorkspaceRequest, kind: str, key: int) -> HttpResponse:
    record = find_record(request.workspace, kind, check_url_number(key))
    if record is None:
        raise Http404("Record not found.")
    rows = list_prompts_with_record(request.workspace, kind, key)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    origin = Origin(kind, str(key))
    context = {
        "record": record,
        "origin": describe_origins(request.workspace, [origin])[origin],
        "page": page,
        "usages": list_record_usages(request.workspace, kind, key, list(page.object_list)),
    }
    return render(request, "prompts/versions/holding.html", context)


urlpatterns: list[URLPattern] = [path("<slug:kind>/<int:key>/", usage_detail, name="record")]
urls = (urlpatterns, "holdings")
