"""Page of an invitation link, for signed-in and anonymous users."""

from allauth.account.adapter import get_adapter
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from personas.accounts.account_adapter import INVITATION_ID_SESSION_KEY, INVITATION_SESSION_KEY
from personas.members.services import (
    BadInvitation,
    accept_invitation,
    get_open_invitation,
)


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def invitation_view(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation on GET and accept it on POST.

    Mail scanners open links in emails, so a GET must not accept the invitation.
    """
    try:
        if request.method == "POST" and request.user.is_authenticated:
            member = accept_invitation(token, request.user)
            request.session.pop(INVITATION_SESSION_KEY, None)
            messages.success(request, _("Welcome to %(workspace)s.") % {"workspace": member.workspace.name})
            return redirect("home", member.workspace.slug)
        invitation = get_open_invitation(token)
    except BadInvitation as error:
        return render(request, "personas/members/bad_invitation.html", {"reason": error.message}, status=410)
    if request.user.is_anonymous:
        # Only the invited address received the link: allow sign-up, and treat the address as verified.
        request.session[INVITATION_SESSION_KEY] = token
        request.session[INVITATION_ID_SESSION_KEY] = invitation.pk
        get_adapter(request).stash_verified_email(request, invitation.email)
    return render(request, "personas/members/invitation.html", {"invitation": invitation, "token": token})


@require_POST
def switch_account(request: HttpRequest, token: str) -> HttpResponse:
    """Sign out and return to the invitation page, for users who want to accept with another account."""
    logout(request)
    return redirect("invitation", token)
