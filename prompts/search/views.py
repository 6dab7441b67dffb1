"""What the command palette finds while somebody types."""

from django.http import JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache

from personas.records.views import get_query_param
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest
from prompts.search.search import SearchResult, search_workspace

MAX_QUERY_LENGTH = 100


@never_cache
def search_palette(request: WorkspaceRequest) -> JsonResponse:
    role = request.membership.role

    def sees(permission: str) -> bool:
        return has_permission(role, Permission(permission))

    found = search_workspace(
        request.workspace, get_query_param(request, "q").strip()[:MAX_QUERY_LENGTH], sees
    )
    return JsonResponse({"results": [search_result_json(one) for one in found]})


def search_result_json(found: SearchResult) -> dict[str, str]:
    """As the entries that come with every page."""
    return {
        "label": found.label,
        "hint": found.hint,
        "url": found.url,
        "icon": found.icon,
        "group": str(found.group),
    }


urlpatterns: list[URLPattern] = [path("", search_palette, name="palette")]
urls = (urlpatterns, "find")
