"""REST operation that searches the whole workspace, as the command palette does."""

from typing import Any

from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import complete_list_response
from personas.api.responses import ApiResponse
from personas.api.schema import (
    boolean_schema,
    enum_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.studio.search.kinds import SEARCH_KINDS
from prompts.studio.search.search import (
    MAX_PER_KIND,
    MAX_RESULTS,
    RANK_ARCHIVED,
    VERSION_KIND,
    SearchResult,
    search_workspace,
)
from prompts.studio.search.views import MAX_QUERY_LENGTH

# API resource names of the search kinds that have a different name there.
RESOURCE_NAMES = {"files": "context-files", VERSION_KIND: "prompt-versions"}
KIND_NAMES = [
    RESOURCE_NAMES.get(name, name) for name in (*(kind.name for kind in SEARCH_KINDS), VERSION_KIND)
]
RESULT_SCHEMA = object_schema(
    {
        "kind": enum_schema(
            KIND_NAMES, description="The resource that the result belongs to.", title="SearchKind"
        ),
        "key": nullable_schema(
            {"type": "string", "description": "The identifier of the row in the URLs of its resource."}
        ),
        "title": {"type": "string"},
        "hint": {"type": "string", "description": "Additional information, such as the status of a memory."},
        "is_archived": boolean_schema(),
        "page": {"type": "string", "description": "The URL of its page in the browser."},
    },
    title="SearchResult",
)


def api_search(call: ApiRequest) -> ApiResponse:
    results = search_workspace(
        call.workspace,
        call.query["q"].strip(),
        lambda permission: Permission(permission) in call.caller.permissions,
    )
    return complete_list_response([search_result_item(result) for result in results if result.kind])


def search_result_item(result: SearchResult) -> dict[str, Any]:
    return {
        "kind": RESOURCE_NAMES.get(result.kind, result.kind),
        "key": result.key or None,
        "title": result.label,
        "hint": result.hint,
        "is_archived": result.rank == RANK_ARCHIVED,
        "page": result.url,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "search",
        "search",
        get=Operation(
            api_search,
            "Search the workspace",
            operation_id="searchWorkspace",
            touches=Touches.WORKSPACE,
            query={
                "q": line_schema(
                    MAX_QUERY_LENGTH,
                    least=1,
                    description="Terms that must all occur. Find versions by number (`mira v12`) or "
                    "by the first characters of a digest.",
                )
            },
            required_params=("q",),
            answer=page_schema(RESULT_SCHEMA),
            example={
                "items": [
                    {
                        "kind": "agents",
                        "key": "mira",
                        "title": "Mira",
                        "hint": "mira",
                        "is_archived": False,
                        "page": "/w/harbour/agents/mira/",
                    }
                ],
                "next_cursor": None,
            },
            note="Records, files, versions, releases, members and, if the key can manage keys, keys. "
            f"At most {MAX_PER_KIND} of each kind and {MAX_RESULTS} in all, best matches of each "
            "kind first.",
            tag="search",
        ),
    ),
]
