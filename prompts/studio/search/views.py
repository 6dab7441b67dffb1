"""Search endpoint of the command palette."""

from django.http import JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache

from personas.records.views import get_query_param
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest
from prompts.studio.search.search import SearchResult, search_workspace

MAX_QUERY_LENGTH = 100


@never_cache
def search_palette(request: WorkspaceRequest) -> JsonResponse:
    role = request.membership.role

    def is_allowed(permission: str) -> bool:
        return has_permission(role, Permission(permission))

    results = search_workspace(
        request.workspace, get_query_param(request, "q").strip()[:MAX_QUERY_LENGTH], is_allowed
    )
    return JsonResponse({"results": [search_result_json(result) for result in results]})


def search_result_json(result: SearchResult) -> dict[str, str]:
    """Serialize a result in the format of the static palette entries that every page contains."""
    return {
        "label": result.label,
        "hint": result.hint,
        "url": result.url,
        "icon": result.icon,
        "group": str(result.group),
    }


urlpatterns: list[URLPattern] = [path("", search_palette, name="palette")]
urls = (urlpatterns, "search")
