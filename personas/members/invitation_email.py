"""The email with an invitation link."""

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from personas.errors import DomainError
from personas.limits.emails import build_public_url, send_text_email
from personas.members.services import build_invitation_token
from personas.models import Invitation


class EmailNotSent(DomainError):
    """The mail server did not accept an email."""

    code = "email_not_sent"


def send_invitation_email(invitation: Invitation) -> None:
    """Send the invitation link to the invited address. The token in the link is not stored.

    Raise EmailNotSent if the mail server cannot be reached or rejects the email; the invitation stays open.
    """
    link = build_public_url(reverse("invitation", args=[build_invitation_token(invitation)]))
    context = {"invitation": invitation, "workspace": invitation.workspace, "link": link}
    subject = _("Join %(workspace)s on Dramatis") % {"workspace": invitation.workspace.name}
    text = render_to_string("personas/members/invitation.txt", context)
    try:
        send_text_email(subject, text, invitation.email)
    except OSError as error:
        raise EmailNotSent(
            _("The invitation for %(email)s was created, but the email could not be sent. Send it again.")
            % {"email": invitation.email}
        ) from error
