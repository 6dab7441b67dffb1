"""People of a workspace: list, invite, change role, hand over, leave."""

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

from personas.audit.audited_export import noted_file
from personas.errors import DomainError, Invalid
from personas.members.forms import InviteForm, RoleForm
from personas.members.invitation_views import send_invitation
from personas.members.services import (
    change_role,
    invite,
    remove_member,
    transfer_ownership,
    withdraw_invitation,
)
from personas.models import Membership
from personas.records.list_views import PAGE_SIZE, asked, chosen_filters, search_words
from personas.roles import Permission, Role
from personas.selectors import members_of, open_invitations_of
from personas.tenancy.middleware import WorkspaceRequest, freshly_signed_in, needs
from personas.ui.export import Column, columns_of
from personas.ui.sorting import in_order, sorting_asked

SORTS = {"person": ("user__email",), "role": ("role", "user__email"), "joined": ("joined_at",)}
COLUMNS = [
    Column("name", lambda member: member.user.name),
    Column("email", lambda member: member.user.email),
    *columns_of(("role", "joined_at")),
]


def member_list(request: WorkspaceRequest) -> HttpResponse:
    return show(request, InviteForm())


@needs(Permission.MANAGE_MEMBERS)
@freshly_signed_in
@require_POST
def send(request: WorkspaceRequest) -> HttpResponse:
    form = InviteForm(request.POST)
    if form.is_valid():
        try:
            invitation = invite(request.workspace, by=request.actor, **form.cleaned_data)
        except Invalid as error:
            for name, said in error.errors.items():
                form.add_error(name if name in form.fields else None, said)
        else:
            send_invitation(request, invitation)
            messages.success(
                request,
                _("Invitation sent to %(email)s; the link holds for seven days.")
                % {"email": invitation.email},
            )
            return redirect("members:list", request.workspace.slug)
    return show(request, form, status=422)


@needs(Permission.MANAGE_MEMBERS)
@require_POST
def withdraw(request: WorkspaceRequest, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(open_invitations_of(request.workspace), pk=invitation_id)
    withdraw_invitation(invitation, by=request.actor)
    messages.success(request, _("The invitation of %(email)s is withdrawn.") % {"email": invitation.email})
    return redirect("members:list", request.workspace.slug)


@needs(Permission.MANAGE_MEMBERS)
@freshly_signed_in
@require_POST
def set_role(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    member = get_object_or_404(members_of(request.workspace), pk=member_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(
            request, _("Role: %(problem)s") % {"problem": form.errors["role"].as_text().removeprefix("* ")}
        )
        return redirect("members:list", request.workspace.slug)
    role = Role(form.cleaned_data["role"])
    said = _("%(person)s is now %(role)s.") % {"person": member.user, "role": role.label.lower()}
    return carry_out(request, lambda: change_role(member, role, by=request.actor), said)


@needs(Permission.MANAGE_MEMBERS)
@freshly_signed_in
@require_POST
def hand_over(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    taker = get_object_or_404(members_of(request.workspace), pk=member_id)
    said = _("%(person)s is now owner; you are admin.") % {"person": taker.user}
    return carry_out(request, lambda: transfer_ownership(request.membership, taker, by=request.actor), said)


@needs(Permission.MANAGE_MEMBERS)
@freshly_signed_in
@require_POST
def remove(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    member = get_object_or_404(members_of(request.workspace), pk=member_id)
    return carry_out(
        request,
        lambda: remove_member(member, by=request.actor),
        _("%(person)s has been removed.") % {"person": member.user},
    )


@needs(Permission.READ)
@require_POST
def leave(request: WorkspaceRequest) -> HttpResponse:
    try:
        remove_member(request.membership, by=request.actor)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("members:list", request.workspace.slug)
    messages.success(request, _("You have left %(workspace)s.") % {"workspace": request.workspace.name})
    return redirect("start")


def carry_out(request: WorkspaceRequest, verb: Callable[[], Membership | None], said: str) -> HttpResponse:
    try:
        verb()
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return redirect("members:list", request.workspace.slug)


@freshly_signed_in
def export(request: WorkspaceRequest) -> HttpResponseBase:
    return noted_file(request, "members", COLUMNS, found_members(request))


def found_members(request: WorkspaceRequest) -> QuerySet[Membership]:
    """The people that the address asks for, in its order."""
    rows, words, role = members_of(request.workspace), search_words(request), asked(request, "role")
    if words:
        rows = rows.filter(Q(user__name__icontains=words) | Q(user__email__icontains=words))
    if role in Role.values:
        rows = rows.filter(role=role)
    return in_order(rows, sorting_asked(request, SORTS, "person"), SORTS)


def show(request: WorkspaceRequest, form: InviteForm, status: int = 200) -> HttpResponse:
    page = Paginator(found_members(request), PAGE_SIZE).get_page(request.GET.get("page"))
    role_filter = {"name": "role", "label": _("Role"), "options": [("", _("Every role")), *Role.choices]}
    filters = chosen_filters(request, [role_filter])
    words = search_words(request)
    context = {
        "page": page,
        "q": words,
        "filters": filters,
        "sorting": sorting_asked(request, SORTS, "person"),
        "is_narrowed": bool(words or filters[0]["value"]),
        "invitations": open_invitations_of(request.workspace),
        "form": form,
        "roles": Role.choices,
    }
    return render(request, "personas/members/list.html", context, status=status)


urls = (
    [
        path("", member_list, name="list"),
        path("export/", export, name="export"),
        path("invite/", send, name="invite"),
        path("leave/", leave, name="leave"),
        path("invitations/<int:invitation_id>/withdraw/", withdraw, name="withdraw"),
        path("<int:member_id>/role/", set_role, name="role"),
        path("<int:member_id>/hand-over/", hand_over, name="hand-over"),
        path("<int:member_id>/remove/", remove, name="remove"),
    ],
    "members",
)
