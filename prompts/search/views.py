"""What the command palette finds while somebody types."""

from django.http import JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache

from personas.records.views import asked
from personas.roles import Permission, may
from personas.tenancy.middleware import WorkspaceRequest
from prompts.search.search import Found, found_by

LONGEST = 100


@never_cache
def palette(request: WorkspaceRequest) -> JsonResponse:
    role = request.membership.role

    def sees(permission: str) -> bool:
        return may(role, Permission(permission))

    found = found_by(request.workspace, asked(request, "q").strip()[:LONGEST], sees)
    return JsonResponse({"results": [entry(one) for one in found]})


def entry(found: Found) -> dict[str, str]:
    """As the entries that come with every page."""
    return {
        "label": found.label,
        "hint": found.hint,
        "url": found.url,
        "icon": found.icon,
        "group": str(found.group),
    }


urlpatterns: list[URLPattern] = [path("", palette, name="palette")]
urls = (urlpatterns, "find")
