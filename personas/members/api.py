"""REST resource of members (read only)."""

from typing import Any

from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.responses import Answer
from personas.api.schema import choice, page_of, shape, whole
from personas.api.views import endpoint
from personas.models import Membership
from personas.roles import Role
from personas.selectors import members_of

MEMBER = shape(
    {"id": whole(1), "email": {"type": "string"}, "name": {"type": "string"}, "role": choice(Role.values)}
)


def members(call: Call) -> Answer:
    rows = members_of(call.workspace)
    page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_answered(call, page, [member_told(row) for row in page.rows])


def member_told(row: Membership) -> dict[str, Any]:
    return {"id": row.pk, "email": row.user.email, "name": row.user.name, "role": row.role}


urlpatterns: list[URLPattern] = [
    endpoint(
        "members",
        "members-list",
        get=Operation(members, "List members", answer=page_of(MEMBER), query=PAGING, tag="members"),
    ),
]
