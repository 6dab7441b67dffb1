"""REST resources of members and invitations."""

from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED_RESPONSES, check_etag
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import (
    ApiResponse,
    datetime_json,
    encode_json,
    json_response,
    no_content_response,
)
from personas.api.schema import (
    Schema,
    boolean_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    line_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.members.invitation_email import send_invitation_email
from personas.members.services import (
    change_role,
    invite_member,
    remove_member,
    resend_invitation,
    withdraw_invitation,
)
from personas.models import Invitation, Membership
from personas.roles import Permission, Role
from personas.selectors import list_members, list_open_invitations

M = TypeVar("M", Membership, Invitation)
OWNER_NOTE = (
    "Requires an admin key of an owner with the verb `manage`. Keys cannot grant the role `owner`, transfer "
    "ownership, or change or remove an owner (403). Owners do this in the browser, on the Members page."
)
ROLE_SCHEMA = enum_schema(Role.values, description="What the member can do in the workspace.", title="Role")
MEMBER_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "email": {"type": "string"},
        "name": {"type": "string"},
        "role": ROLE_SCHEMA,
        "joined_at": datetime_schema(),
        "etag": {"type": "string", "description": "Send it as If-Match. It changes with the member."},
    },
    title="Member",
)
INVITATION_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "email": {"type": "string"},
        "role": ROLE_SCHEMA,
        "invited_by": {
            "type": "string",
            "description": ("Email address of the member who sent the invitation."),
        },
        "created_at": datetime_schema(),
        "expires_at": datetime_schema(description="When the link in the email expires."),
        "is_expired": boolean_schema(),
    },
    title="Invitation",
)
MEMBER_EXAMPLE = {
    "id": 3,
    "email": "bob@example.com",
    "name": "Bob",
    "role": "editor",
    "joined_at": "2026-03-07T14:55:05Z",
    "etag": '"5f2b0c1d9a3e4f60"',
}
INVITATION_EXAMPLE = {
    "id": 8,
    "email": "carol@example.com",
    "role": "viewer",
    "invited_by": "alice@example.com",
    "created_at": "2026-03-07T14:55:05Z",
    "expires_at": "2026-03-14T14:55:05Z",
    "is_expired": False,
}
MEMBER_FILTERS: dict[str, Schema] = {
    "q": line_schema(200, least=1, description="Text to search for in names and email addresses."),
    "role": enum_schema(Role.values, description="Only members with this role.", title="Role"),
}
READ_OPTIONS: dict[str, Any] = {"touches": Touches.WORKSPACE, "tag": "members"}
MANAGE_OPTIONS: dict[str, Any] = {
    **READ_OPTIONS,
    "permission": Permission.MANAGE_MEMBERS,
    "note": OWNER_NOTE,
}
EMAIL_REFUSALS = {429: "daily_limit_reached", 503: "email_not_sent"}


# --- members --------------------------------------------------------------------------------------------


def api_list_members(call: ApiRequest) -> ApiResponse:
    rows = list_matching_members(call)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [member_json(row) for row in page.rows])


def list_matching_members(call: ApiRequest) -> QuerySet[Membership]:
    rows = list_members(call.workspace)
    if text := call.query.get("q", "").strip():
        rows = rows.filter(Q(user__name__icontains=text) | Q(user__email__icontains=text))
    if role := call.query.get("role"):
        rows = rows.filter(role=role)
    return rows


def api_read_member(call: ApiRequest, key: int) -> ApiResponse:
    return member_response(find_row(list_members(call.workspace), key))


def api_change_role(call: ApiRequest, key: int) -> ApiResponse:
    member = find_row(list_members(call.workspace), key)
    check_etag(get_member_etag(member), call.if_match)
    if call.body["role"] != member.role:
        check_role_grantable(call, call.body["role"])
    return member_response(change_role(member, call.body["role"], by=call.actor))


def api_remove_member(call: ApiRequest, key: int) -> ApiResponse:
    member = find_row(list_members(call.workspace), key)
    check_etag(get_member_etag(member), call.if_match)
    remove_member(member, by=call.actor)
    return no_content_response()


def find_row(rows: QuerySet[M], key: int) -> M:
    row = rows.filter(pk=key).first() if 0 < key < 2**63 else None
    if row is None:
        raise Http404
    return row


def check_role_grantable(call: ApiRequest, role: str) -> None:
    """Raise 403 for the role owner: a stolen key must not create an owner, who could remove the others."""
    if role == Role.OWNER:
        page = f"{settings.PUBLIC_URL}/w/{call.workspace.slug}/members/"
        detail = f"Keys cannot grant the role owner. Use the browser: {page}"
        raise ProblemError(Problem(403, "not_allowed", detail, [FieldError(detail, "/role")]))


def member_response(member: Membership) -> ApiResponse:
    return json_response(member_json(member), ETag=get_member_etag(member))


def member_json(member: Membership) -> dict[str, Any]:
    return {**get_member_fields(member), "etag": get_member_etag(member)}


def get_member_fields(member: Membership) -> dict[str, Any]:
    return {
        "id": member.pk,
        "email": member.user.email,
        "name": member.user.name,
        "role": member.role,
        "joined_at": datetime_json(member.joined_at),
    }


def get_member_etag(member: Membership) -> str:
    return f'"{sha256(encode_json(get_member_fields(member))).hexdigest()[:16]}"'


# --- invitations ----------------------------------------------------------------------------------------


def api_list_invitations(call: ApiRequest) -> ApiResponse:
    rows = list_open_invitations(call.workspace)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [invitation_json(row) for row in page.rows])


def api_read_invitation(call: ApiRequest, key: int) -> ApiResponse:
    return json_response(invitation_json(find_row(list_open_invitations(call.workspace), key)))


def api_invite_member(call: ApiRequest) -> ApiResponse:
    check_role_grantable(call, call.body["role"])
    invitation = invite_member(call.workspace, call.body["email"], call.body["role"], by=call.actor)
    return new_invitation_response(invitation)


def api_resend_invitation(call: ApiRequest, key: int) -> ApiResponse:
    invitation = find_row(list_open_invitations(call.workspace), key)
    check_role_grantable(call, invitation.role)
    return new_invitation_response(resend_invitation(invitation, by=call.actor))


def api_withdraw_invitation(call: ApiRequest, key: int) -> ApiResponse:
    withdraw_invitation(find_row(list_open_invitations(call.workspace), key), by=call.actor)
    return no_content_response()


def new_invitation_response(invitation: Invitation) -> ApiResponse:
    """Return a new invitation, and send its email after the commit: a sent link must lead somewhere."""
    transaction.on_commit(partial(send_invitation_email, invitation))
    url = f"/api/v1/invitations/{invitation.pk}"
    return json_response(invitation_json(invitation), 201, Location=url)


def invitation_json(invitation: Invitation) -> dict[str, Any]:
    return {
        "id": invitation.pk,
        "email": invitation.email,
        "role": invitation.role,
        "invited_by": invitation.invited_by.email,
        "created_at": datetime_json(invitation.created_at),
        "expires_at": datetime_json(invitation.expires_at),
        "is_expired": invitation.is_expired,
    }


CHANGE_ROLE_SCHEMA = object_schema({"role": ROLE_SCHEMA}, title="MemberPatch")
INVITE_SCHEMA = object_schema(
    {
        "email": line_schema(254, least=3, format="email", description="Where the link is sent."),
        "role": ROLE_SCHEMA,
    },
    title="InvitationInput",
)

urlpatterns: list[URLPattern] = [
    endpoint(
        "members",
        "members-list",
        get=Operation(
            api_list_members,
            "List members",
            operation_id="listMembers",
            answer=page_schema(MEMBER_SCHEMA),
            query={**MEMBER_FILTERS, **PAGINATION_PARAMS},
            **READ_OPTIONS,
        ),
    ),
    endpoint(
        "members/<int:id>",
        "members-one",
        get=Operation(
            api_read_member,
            "Get a member",
            operation_id="getMember",
            extra_responses=NOT_MODIFIED_RESPONSES,
            answer=MEMBER_SCHEMA,
            example=MEMBER_EXAMPLE,
            **READ_OPTIONS,
        ),
        patch=Operation(
            api_change_role,
            "Change the role of a member",
            operation_id="updateMember",
            body=CHANGE_ROLE_SCHEMA,
            body_example={"role": "reviewer"},
            answer=MEMBER_SCHEMA,
            example={**MEMBER_EXAMPLE, "role": "reviewer"},
            is_conditional=True,
            **MANAGE_OPTIONS,
        ),
        delete=Operation(
            api_remove_member,
            "Remove a member",
            operation_id="removeMember",
            status=204,
            is_conditional=True,
            **{
                **MANAGE_OPTIONS,
                "note": f"Revokes the admin keys of the member and deletes the member's drafts. {OWNER_NOTE}",
            },
        ),
    ),
    endpoint(
        "invitations",
        "invitations-list",
        get=Operation(
            api_list_invitations,
            "List invitations",
            operation_id="listInvitations",
            answer=page_schema(INVITATION_SCHEMA),
            query=PAGINATION_PARAMS,
            note="Invitations that were neither accepted nor withdrawn, including expired ones.",
            **READ_OPTIONS,
        ),
        post=Operation(
            api_invite_member,
            "Invite someone by email",
            operation_id="createInvitation",
            body=INVITE_SCHEMA,
            body_example={"email": "carol@example.com", "role": "viewer"},
            answer=INVITATION_SCHEMA,
            example=INVITATION_EXAMPLE,
            status=201,
            is_retryable=True,
            refusals=EMAIL_REFUSALS,
            **MANAGE_OPTIONS,
        ),
    ),
    endpoint(
        "invitations/<int:id>",
        "invitations-one",
        get=Operation(
            api_read_invitation,
            "Get an invitation",
            operation_id="getInvitation",
            answer=INVITATION_SCHEMA,
            example=INVITATION_EXAMPLE,
            **READ_OPTIONS,
        ),
    ),
    endpoint(
        "invitations/<int:id>:resend",
        "invitations-resend",
        post=Operation(
            api_resend_invitation,
            "Send an invitation again",
            operation_id="resendInvitation",
            answer=INVITATION_SCHEMA,
            example=INVITATION_EXAMPLE,
            status=201,
            is_retryable=True,
            refusals=EMAIL_REFUSALS,
            **{
                **MANAGE_OPTIONS,
                "note": "Creates a new invitation for the same address and role and withdraws the "
                f"old one. Its link stops working. {OWNER_NOTE}",
            },
        ),
    ),
    endpoint(
        "invitations/<int:id>:withdraw",
        "invitations-withdraw",
        post=Operation(
            api_withdraw_invitation,
            "Withdraw an invitation",
            operation_id="withdrawInvitation",
            status=204,
            is_retryable=True,
            **MANAGE_OPTIONS,
        ),
    ),
]
