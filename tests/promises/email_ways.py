"""Every way to cause an email, tied to the code: a new call that sends one needs a row here.

`OWN_CALLS` lists the functions of the product that send, `ALLAUTH_TEMPLATES` the emails of django-allauth.
All of those pass `AccountAdapter.send_mail`.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import allauth
from allauth.account.adapter import get_adapter
from allauth.core.context import request_context
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.test import Client, RequestFactory

from personas.events.services import record_event
from personas.models import Invitation, Membership, Notification, User, Workspace
from personas.notifications.emails import EMAIL_DELAY, send_notification_emails
from personas.notifications.services import create_all_notifications
from personas.roles import Role
from tests.factories import PASSWORD, join, make_user, signed_in, signed_in_operator
from tests.project.backup.backup_stage import ROOT

APPS = ("core", "personas", "skills", "prompts", "project")
SENDERS = frozenset(
    {
        *("send_mail", "send_mass_mail", "mail_admins", "mail_managers", "EmailMessage"),
        *("EmailMultiAlternatives", "send_notification_mail", "send_text_email"),
        *("send_password_reset_mail", "send_invitation_email", "send_messages", "ResetPasswordForm"),
    }
)
# By module and function: the row of WAYS that calls it, or why it sends nothing of its own.
OWN_CALLS = {
    "personas/limits/emails.py send_text_email": "the function that sends; its callers are rows of their own",
    "personas/members/invitation_email.py send_invitation_email": "invitation by page",
    "personas/members/views.py send_email": "invitation by page",
    "personas/members/api.py new_invitation_response": "invitation by key",
    "personas/notifications/emails.py send_digest": "notifications",
    "personas/accounts/account_adapter.py send_mail": "the function that all emails of allauth pass",
    "personas/accounts/account_adapter.py send_password_reset_mail": "password reset",
    "personas/accounts/operator_services.py send_password_reset": "password reset by an operator",
    "personas/accounts/operator_services.py remove_second_factors": "notice mfa/email/totp_deactivated",
    "core/outgoing/email_backend.py send": "the mail server of production; it sends what others built",
    "core/outgoing/email_backend.py send_messages": "the mail server of production",
    "project/dev_mail/backend.py send_messages": "the mail server of development; it stores what others send",
    "project/dev_mail/views.py build_stored_email": "shows a stored email",
}
# By template: the row of WAYS that sends it, or why nothing does.
ALLAUTH_TEMPLATES = {
    "account/email/account_already_exists": "sign-up with a known address",
    "account/email/email_changed": "notice account/email/email_changed",
    "account/email/email_confirmation": "another address of an account",
    "account/email/email_confirmation_signup": "sign-up",
    "account/email/email_deleted": "notice account/email/email_deleted",
    "account/email/login_code": "not enabled: ACCOUNT_LOGIN_BY_CODE_ENABLED",
    "account/email/password_changed": "notice account/email/password_changed",
    "account/email/password_reset": "notice account/email/password_reset",
    "account/email/password_reset_code": "not enabled: ACCOUNT_PASSWORD_RESET_BY_CODE_ENABLED",
    "account/email/password_reset_key": "password reset",
    "account/email/password_set": "notice account/email/password_set",
    "account/email/unknown_account": "password reset of an unknown address",
    "mfa/email/recovery_codes_generated": "notice mfa/email/recovery_codes_generated",
    "mfa/email/totp_activated": "notice mfa/email/totp_activated",
    "mfa/email/totp_deactivated": "notice mfa/email/totp_deactivated",
    "mfa/email/webauthn_added": "notice mfa/email/webauthn_added",
    "mfa/email/webauthn_removed": "notice mfa/email/webauthn_removed",
}
EXPIRES_AT = "2030-01-01T00:00:00+00:00"
TEMPLATE = re.compile(r"""["']((?:account|mfa)/email/[a-z_]+)["']""")


@dataclass
class Scene:
    """Alice owns a workspace; Victor is the person whom the emails are sent to."""

    alice: User
    workspace: Workspace
    api: Any
    operator: User
    headers: Mapping[str, Any] = field(default_factory=dict)
    address: str = "victor@example.com"
    number: int = 0
    # Sends emails in one way, some number of times, and returns those to the address.
    run: Callable[..., list[Any]] = lambda way, times=1: []  # set by the fixture

    @property
    def victor(self) -> User:
        return User.objects.filter(email=self.address).first() or make_user("Victor", email=self.address)

    def visit(self) -> Client:
        """A browser from a new address, for which allauth has counted nothing."""
        self.number += 1
        cache.clear()
        return Client(REMOTE_ADDR=f"198.51.100.{self.number % 250}", **self.headers)

    def sign_in(self, user: User) -> Client:
        cache.clear()
        client = signed_in(user)
        client.defaults |= self.headers
        return client


def reset_password(scene: Scene) -> None:
    scene.visit().post("/accounts/password/reset/", {"email": scene.victor.email})


def reset_unknown(scene: Scene) -> None:
    scene.visit().post("/accounts/password/reset/", {"email": scene.address})


def sign_up(scene: Scene) -> None:
    User.objects.filter(email=scene.address).delete()
    fields = {"email": scene.address, "password1": PASSWORD, "password2": PASSWORD}
    scene.visit().post("/accounts/signup/", fields)


def sign_up_again(scene: Scene) -> None:
    fields = {"email": scene.victor.email, "password1": PASSWORD, "password2": PASSWORD}
    scene.visit().post("/accounts/signup/", fields)


def sign_in_unverified(scene: Scene) -> None:
    """A user who has not confirmed the address gets another email at each sign-in."""
    sign_up(scene)
    scene.visit().post("/accounts/login/", {"login": scene.address, "password": PASSWORD})


def add_address(scene: Scene) -> None:
    """Any user can add any address to the own account, remove it, and add it again."""
    client = scene.sign_in(scene.alice)
    client.post("/accounts/email/", {"email": scene.address, "action_remove": ""})
    client.post("/accounts/email/", {"email": scene.address, "action_add": ""})


def reset_by_operator(scene: Scene) -> None:
    client = signed_in_operator(scene.operator)
    client.defaults |= scene.headers
    fields = {"action": "send_reset_email", "_selected_action": [scene.victor.pk]}
    client.post("/operator/personas/user/", fields)


def invite_by_page(scene: Scene) -> None:
    client = scene.sign_in(scene.alice)
    path = f"/w/{scene.workspace.slug}/members/"
    open_rows = Invitation.objects.in_workspace(scene.workspace).filter(
        email=scene.address, accepted_at=None, withdrawn_at=None
    )
    if row := open_rows.first():
        client.post(f"{path}invitations/{row.pk}/resend/")
    else:
        client.post(f"{path}invite/", {"email": scene.address, "role": "viewer"})


def invite_by_key(scene: Scene) -> None:
    rows = scene.api.get("invitations").json()["items"]
    if found := [row for row in rows if row["email"] == scene.address]:
        scene.api.post(f"invitations/{found[0]['id']}:resend")
    else:
        scene.api.post("invitations", {"email": scene.address, "role": "viewer"})


def notify(scene: Scene) -> None:
    if not Membership.objects.in_workspace(scene.workspace).filter(user=scene.victor).exists():
        join(scene.workspace, scene.victor, Role.ADMIN)
    scene.number += 1
    data = {"key_id": scene.number, "kind": "bot", "expires_at": EXPIRES_AT, "new_key_id": None}
    record_event(scene.workspace, "key.expiring", data)
    create_all_notifications()
    for row in Notification.objects.in_workspace(scene.workspace).filter(emailed_at=None):
        row.at -= EMAIL_DELAY + timedelta(seconds=1)
        row.save(update_fields=["at"])
    send_notification_emails()


def send_notice(template: str, scene: Scene) -> None:
    """What the pages of an account do after a change."""
    request = RequestFactory(**scene.headers).post("/accounts/")
    request.user = AnonymousUser()
    with request_context(request):
        get_adapter(request).send_notification_mail(template, scene.victor)


Way = Callable[[Scene], None]
NOTICES = [name for name, way in ALLAUTH_TEMPLATES.items() if way == f"notice {name}"]
WAYS: dict[str, Way] = {
    "password reset": reset_password,
    "password reset of an unknown address": reset_unknown,
    "sign-up": sign_up,
    "sign-up with a known address": sign_up_again,
    "sign-in with an unconfirmed address": sign_in_unverified,
    "another address of an account": add_address,
    "password reset by an operator": reset_by_operator,
    "invitation by page": invite_by_page,
    "invitation by key": invite_by_key,
    "notifications": notify,
    **{f"notice {name}": partial(send_notice, name) for name in NOTICES},
}


# --- the code that sends ---------------------------------------------------------------------------------


def list_own_calls(root: Path = ROOT) -> set[str]:
    """Return module and function of every call of something that sends emails."""
    return {
        f"{path.relative_to(root)} {name}"
        for app in APPS
        for path in (root / app).rglob("*.py")
        for name in list_sending_functions(ast.parse(path.read_text()))
    }


def list_sending_functions(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute | ast.Name)
        }
        if function.name in SENDERS - {"send_invitation_email"} or names & SENDERS:
            yield function.name


def list_allauth_templates() -> set[str]:
    folder = Path(allauth.__file__).parent
    paths = [*(folder / "account").rglob("*.py"), *(folder / "mfa").rglob("*.py")]
    return {
        name for path in paths if "tests" not in path.parts for name in TEMPLATE.findall(path.read_text())
    }


def find_unlisted_emails(root: Path = ROOT) -> list[str]:
    """Return code that sends emails without a row, and rows that nothing calls."""
    pairs = (list_own_calls(root), set(OWN_CALLS)), (list_allauth_templates(), set(ALLAUTH_TEMPLATES))
    return sorted(name for found, listed in pairs for name in found ^ listed)
