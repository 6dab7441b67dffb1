"""Pages of members: list, invite, change role, transfer ownership, remove, leave."""

from collections.abc import Callable

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.audit.audited_export import audited_file_response
from personas.errors import DomainError, InvalidInput
from personas.limits.daily_usage import DailyLimitReached
from personas.members.forms import InviteForm, RoleForm
from personas.members.invitation_email import EmailNotSent, send_invitation_email
from personas.members.services import (
    change_role,
    invite_member,
    remove_member,
    resend_invitation,
    transfer_ownership,
    withdraw_invitation,
)
from personas.models import Invitation, Membership
from personas.records.list_views import PAGE_SIZE, get_query_param, get_search_query, set_filter_values
from personas.roles import Permission, Role
from personas.selectors import list_members, list_open_invitations
from personas.tenancy.middleware import WorkspaceRequest, require_permission, require_reauthentication
from personas.ui.export import ExportColumn, build_export_columns
from personas.ui.review import NotReviewed
from personas.ui.sorting import get_sort_order, sort_rows

NOT_REVIEWED = NotReviewed("members and invitations")

MEMBER_SORTS = {"person": ("user__email",), "role": ("role", "user__email"), "joined": ("joined_at",)}
MEMBER_EXPORT_COLUMNS = [
    ExportColumn("name", lambda member: member.user.name),
    ExportColumn("email", lambda member: member.user.email),
    *build_export_columns(("role", "joined_at")),
]


def member_list(request: WorkspaceRequest) -> HttpResponse:
    return render_member_list(request, InviteForm())


@require_permission(Permission.MANAGE_MEMBERS, NOT_REVIEWED)
@require_reauthentication
@require_POST
def invite_member_view(request: WorkspaceRequest) -> HttpResponse:
    form = InviteForm(request.POST)
    if form.is_valid():
        try:
            invitation = invite_member(request.workspace, by=request.actor, **form.cleaned_data)
        except InvalidInput as error:
            for name, texts in error.errors.items():
                form.add_error(name if name in form.fields else None, texts)
        except DailyLimitReached as error:
            return render_limit(request, form, error)
        else:
            send_email(request, invitation)
            return redirect("members:list", request.workspace.slug)
    return render_member_list(request, form, status=422)


@require_permission(Permission.MANAGE_MEMBERS, NOT_REVIEWED)
@require_reauthentication
@require_POST
def resend_invitation_view(request: WorkspaceRequest, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(list_open_invitations(request.workspace), pk=invitation_id)
    try:
        send_email(request, resend_invitation(invitation, by=request.actor))
    except DailyLimitReached as error:
        return render_limit(request, InviteForm(), error)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("members:list", request.workspace.slug)


def render_limit(request: WorkspaceRequest, form: InviteForm, error: DailyLimitReached) -> HttpResponse:
    """Show the list with the reason why no invitation was sent."""
    messages.error(request, error.message)
    response = render_member_list(request, form, status=429)
    response["Retry-After"] = str(error.retry_after)
    return response


def send_email(request: WorkspaceRequest, invitation: Invitation) -> None:
    """Send the email of an invitation, and tell the user whether it was sent."""
    try:
        send_invitation_email(invitation)
    except EmailNotSent as error:
        messages.error(request, error.message)
        return
    messages.success(
        request,
        _("Invitation sent to %(email)s. The link expires in 7 days.") % {"email": invitation.email},
    )


@require_permission(Permission.MANAGE_MEMBERS, NOT_REVIEWED)
@require_POST
def withdraw_invitation_view(request: WorkspaceRequest, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(list_open_invitations(request.workspace), pk=invitation_id)
    withdraw_invitation(invitation, by=request.actor)
    messages.success(request, _("Invitation for %(email)s withdrawn.") % {"email": invitation.email})
    return redirect("members:list", request.workspace.slug)


@require_permission(Permission.MANAGE_MEMBERS, NOT_REVIEWED)
@require_reauthentication
@require_POST
def change_role_view(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    member = get_object_or_404(list_members(request.workspace), pk=member_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(
            request, _("Role: %(problem)s") % {"problem": form.errors["role"].as_text().removeprefix("* ")}
        )
        return redirect("members:list", request.workspace.slug)
    role = Role(form.cleaned_data["role"])
    message = _("%(person)s now has the %(role)s role.") % {"person": member.user, "role": role.label.lower()}
    return run_member_action(request, lambda: change_role(member, role, by=request.actor), message)


@require_permission(Permission.MANAGE_MEMBERS, NOT_REVIEWED)
@require_reauthentication
@require_POST
def transfer_ownership_view(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    new_owner = get_object_or_404(list_members(request.workspace), pk=member_id)
    message = _("%(person)s is now an owner, and you are an admin.") % {"person": new_owner.user}
    return run_member_action(
        request, lambda: transfer_ownership(request.membership, new_owner, by=request.actor), message
    )


@require_permission(Permission.MANAGE_MEMBERS, NOT_REVIEWED)
@require_reauthentication
@require_POST
def remove_member_view(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    member = get_object_or_404(list_members(request.workspace), pk=member_id)
    return run_member_action(
        request,
        lambda: remove_member(member, by=request.actor),
        _("%(person)s has been removed.") % {"person": member.user},
    )


@require_permission(Permission.READ, NOT_REVIEWED)
@require_POST
def leave_workspace(request: WorkspaceRequest) -> HttpResponse:
    try:
        remove_member(request.membership, by=request.actor)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("members:list", request.workspace.slug)
    messages.success(request, _("You have left %(workspace)s.") % {"workspace": request.workspace.name})
    return redirect("start")


def run_member_action(
    request: WorkspaceRequest, action: Callable[[], Membership | None], message: str
) -> HttpResponse:
    try:
        action()
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, message)
    return redirect("members:list", request.workspace.slug)


@require_reauthentication
def export(request: WorkspaceRequest) -> HttpResponseBase:
    return audited_file_response(request, "members", MEMBER_EXPORT_COLUMNS, list_filtered_members(request))


def list_filtered_members(request: WorkspaceRequest) -> QuerySet[Membership]:
    """Return the members that match the filters in the query string, in the sort order requested there."""
    rows, text, role = (
        list_members(request.workspace),
        get_search_query(request),
        get_query_param(request, "role"),
    )
    if text:
        rows = rows.filter(Q(user__name__icontains=text) | Q(user__email__icontains=text))
    if role in Role.values:
        rows = rows.filter(role=role)
    return sort_rows(rows, get_sort_order(request, MEMBER_SORTS, "person"), MEMBER_SORTS)


def render_member_list(request: WorkspaceRequest, form: InviteForm, status: int = 200) -> HttpResponse:
    page = Paginator(list_filtered_members(request), PAGE_SIZE).get_page(request.GET.get("page"))
    role_filter = {"name": "role", "label": _("Role"), "options": [("", _("All roles")), *Role.choices]}
    filters = set_filter_values(request, [role_filter])
    text = get_search_query(request)
    context = {
        "page": page,
        "q": text,
        "filters": filters,
        "sorting": get_sort_order(request, MEMBER_SORTS, "person"),
        "is_narrowed": bool(text or filters[0]["value"]),
        "invitations": list_open_invitations(request.workspace),
        "form": form,
        "roles": Role.choices,
    }
    return render(request, "personas/members/list.html", context, status=status)


urls = (
    [
        path("", member_list, name="list"),
        path("export/", export, name="export"),
        path("invite/", invite_member_view, name="invite"),
        path("leave/", leave_workspace, name="leave"),
        path("invitations/<int:invitation_id>/resend/", resend_invitation_view, name="resend"),
        path("invitations/<int:invitation_id>/withdraw/", withdraw_invitation_view, name="withdraw"),
        path("<int:member_id>/role/", change_role_view, name="role"),
        path("<int:member_id>/hand-over/", transfer_ownership_view, name="hand-over"),
        path("<int:member_id>/remove/", remove_member_view, name="remove"),
    ],
    "members",
)
