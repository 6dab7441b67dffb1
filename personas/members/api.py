"""REST resource of members (read only)."""

from typing import Any

from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse
from personas.api.schema import enum_schema, integer_schema, object_schema, page_schema
from personas.api.views import endpoint
from personas.models import Membership
from personas.roles import Role
from personas.selectors import list_members

MEMBER_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "email": {"type": "string"},
        "name": {"type": "string"},
        "role": enum_schema(Role.values),
    }
)


def api_list_members(call: ApiRequest) -> ApiResponse:
    rows = list_members(call.workspace)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [member_json(row) for row in page.rows])


def member_json(row: Membership) -> dict[str, Any]:
    return {"id": row.pk, "email": row.user.email, "name": row.user.name, "role": row.role}


urlpatterns: list[URLPattern] = [
    endpoint(
        "members",
        "members-list",
        get=Operation(
            api_list_members,
            "List members",
            operation_id="listMembers",
            touches=Touches.WORKSPACE,
            answer=page_schema(MEMBER_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="members",
        ),
    ),
]
