"""The letter that carries an invitation."""

from django.core.mail import send_mail
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from personas.members.services import invitation_token
from personas.models import Invitation


def send_invitation(request: HttpRequest, invitation: Invitation) -> None:
    """Send the link to the invited address; the token is nowhere else."""
    link = request.build_absolute_uri(reverse("invitation", args=[invitation_token(invitation)]))
    context = {"invitation": invitation, "workspace": invitation.workspace, "link": link}
    # Names come from tenants: a line break in a subject would be a header of their making.
    subject = " ".join(
        (_("Join %(workspace)s on Dramatis") % {"workspace": invitation.workspace.name}).split()
    )
    send_mail(subject, render_to_string("personas/members/invitation.txt", context), None, [invitation.email])
