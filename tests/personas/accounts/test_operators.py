"""The operator site: second factor, recent confirmation, no passwords, and an audit that tenants see."""

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from personas.models import AuditEvent, SecurityEvent, Soul, User
from project import admin_site
from tests.factories import (
    make_memory,
    make_operator,
    make_soul,
    make_user,
    signed_in,
    signed_in_operator,
)
from tests.personas.accounts.sign_in import (
    OTHER_ADDRESS,
    enter_code,
    give_password,
    give_totp,
    is_signed_in,
    sign_in,
)

pytestmark = pytest.mark.django_db
REAUTHENTICATE = "/accounts/2fa/reauthenticate/"


@pytest.fixture
def otto(db):
    return make_operator()


@pytest.fixture
def as_operator(otto):
    return signed_in_operator(otto)


def views_of(workspace):
    rows = AuditEvent.objects.in_workspace(workspace).filter(verb="viewed").order_by("pk")
    return [(row.actor_label, row.kind, row.object_id, row.object_label) for row in rows]


def address(row, page="change"):
    return f"/operator/personas/{row._meta.model_name}/{row.pk}/{page}/"


# --- access --------------------------------------------------------------------------------------------


def test_a_superuser_with_a_password_alone_is_sent_to_set_up_a_factor(workspace):
    memory = make_memory(workspace, "Likes tea.")
    user = give_password(make_user("Root"))
    user.is_superuser = True
    user.save()
    browser = sign_in(user)
    for path in ("/operator/", address(memory), "/operator/personas/user/"):
        answer = browser.get(path)
        assert answer["Location"] == "/accounts/2fa/"
    assert "Operators need a second factor" in browser.get("/accounts/2fa/").content.decode()
    assert views_of(workspace) == []


def test_recovery_codes_alone_are_no_second_factor(otto, as_operator):
    Authenticator.objects.filter(user=otto).update(type="recovery_codes")
    assert as_operator.get("/operator/")["Location"] == "/accounts/2fa/"


@pytest.mark.slow
def test_the_site_opens_after_a_sign_in_with_the_factor_and_asks_again_later(workspace, settings):
    soul = make_soul(workspace)
    user = give_password(make_user("Root"))
    user.is_superuser = True
    user.save()
    secret = give_totp(user)
    start = timezone.now().timestamp()
    with time_machine.travel(start, tick=False):
        browser = sign_in(user, secret=secret)
        assert browser.get("/operator/").status_code == 200
    with time_machine.travel(start + settings.DRAMATIS_OPERATOR_MINUTES * 60 + 1, tick=False):
        path = address(soul)
        answer = browser.get(path)
        assert answer["Location"] == f"{REAUTHENTICATE}?next={path.replace('/', '%2F')}"
        assert enter_code(browser, secret, answer["Location"])["Location"] == path
        assert browser.get(path).status_code == 200


def test_a_change_is_kept_while_the_factor_is_confirmed(workspace):
    soul = make_soul(workspace)
    user = give_password(make_operator("Root"))
    Authenticator.objects.filter(user=user).delete()
    secret = give_totp(user)
    browser = signed_in(user)
    fields = {"name": soul.name, "text": "Changed.", "expected": soul.revision}
    answer = browser.post(address(soul), fields)
    assert answer["Location"].startswith(REAUTHENTICATE)
    assert Soul.objects.in_workspace(workspace).get().text != "Changed."
    enter_code(browser, secret, answer["Location"])
    assert Soul.objects.in_workspace(workspace).get().text == "Changed."


@pytest.mark.slow
def test_a_password_is_not_enough_to_confirm(otto, workspace):
    browser = sign_in(give_password(make_user("Root", email="root@example.com")))
    user = User.objects.get(email="root@example.com")
    user.is_superuser = True
    user.save()
    give_totp(user)
    browser.post("/accounts/reauthenticate/", {"password": "quiet-lantern-forty-two"})
    assert browser.get("/operator/")["Location"].startswith(REAUTHENTICATE)


@pytest.mark.planted
def test_a_site_without_the_check_is_detected(workspace, monkeypatch):
    monkeypatch.setattr(admin_site, "require_recent_second_factor", lambda request: None)
    user = make_user("Root")
    user.is_superuser = True
    user.save()
    assert signed_in(user).get("/operator/").status_code == 200


# --- accounts ------------------------------------------------------------------------------------------


def test_passwords_and_email_addresses_cannot_be_set(as_operator, bob):
    give_password(bob)
    before = bob.password
    assert as_operator.get(f"/operator/personas/user/{bob.pk}/password/").status_code == 302
    page = as_operator.get(address(bob)).content.decode()
    assert "password" not in page.replace("password_change", "").lower().partition("<form")[2]
    fields = {"email": "mine@example.com", "name": "Bob", "timezone": "UTC", "is_active": "on"}
    new = "a password of mine"
    as_operator.post(address(bob), fields | {"password": new, "password1": new, "password2": new})
    as_operator.post(f"/operator/personas/user/{bob.pk}/password/", {"password1": new, "password2": new})
    bob.refresh_from_db()
    assert (bob.password, bob.email) == (before, "bob@example.com")
    assert as_operator.post("/operator/password_change/")["Location"] == "/accounts/password/change/"


@pytest.mark.parametrize("table", ["mfa/authenticator", "account/emailaddress", "usersessions/usersession"])
def test_factors_addresses_and_sessions_have_no_pages(as_operator, table):
    assert as_operator.get(f"/operator/{table}/").status_code == 404


def test_a_new_account_has_no_password(as_operator):
    fields = {"email": "New@example.com", "name": "New", "timezone": "UTC", "is_active": "on"}
    assert as_operator.post("/operator/personas/user/add/", fields).status_code == 302
    user = User.objects.get(email="new@example.com")
    assert not user.has_usable_password()
    assert SecurityEvent.objects.get(user=user).detail == "created"


def test_a_reset_email_goes_to_the_user_and_is_recorded_for_user_and_workspaces(
    as_operator, bob, workspace, elsewhere, mailoutbox
):
    give_password(bob)
    body = {"action": "send_reset_email", "_selected_action": [bob.pk]}
    page = as_operator.post("/operator/personas/user/", body, follow=True).content.decode()
    [mail] = mailoutbox
    assert mail.to == [bob.email]
    assert "/accounts/password/reset/key/" in mail.body
    assert "/accounts/password/reset/key/" not in page
    events = SecurityEvent.objects.filter(user=bob)
    assert [(row.kind, row.detail, row.actor_label, row.network) for row in events] == [
        ("account_changed", "password reset sent", "operator Otto", "")
    ]
    event = AuditEvent.objects.in_workspace(workspace).latest("pk")
    assert (event.verb, event.actor_label, event.after) == (
        "account changed",
        "operator Otto",
        {"changed": "password reset sent"},
    )
    assert not AuditEvent.objects.in_workspace(elsewhere).filter(verb="account changed").exists()


def test_removed_factors_end_sessions_notify_the_user_and_are_recorded(
    as_operator, bob, workspace, mailoutbox
):
    secret = give_totp(give_password(bob))
    browser = sign_in(bob, secret=secret, address=OTHER_ADDRESS)
    # Clearing the cache in sign_in does not touch the session of the operator.
    body = {"action": "remove_factors", "_selected_action": [bob.pk]}
    as_operator.post("/operator/personas/user/", body)
    assert not Authenticator.objects.filter(user=bob).exists()
    assert not is_signed_in(browser)
    assert mailoutbox[-1].to == [bob.email]
    assert "operator Otto" in mailoutbox[-1].body
    kinds = SecurityEvent.objects.filter(user=bob, actor_label="operator Otto").values_list("kind", flat=True)
    assert set(kinds) == {"second_factor_removed", "account_changed"}
    assert AuditEvent.objects.in_workspace(workspace).latest("pk").after == {
        "changed": "second factors removed"
    }


def test_a_changed_account_is_in_the_users_list_and_the_workspaces_log(as_operator, bob, workspace, alice):
    fields = {"name": "Robert", "timezone": "UTC"}
    assert as_operator.post(address(bob), fields).status_code == 302
    page = signed_in(alice).get(f"/w/{workspace.slug}/audit/?verb=account+changed").content.decode()
    assert "operator Otto" in page
    bob.refresh_from_db()
    assert not bob.is_active
    bob.is_active = True
    bob.save()
    page = signed_in(bob).get("/profile/security/").content.decode()
    assert "Account changed by an operator" in page
    assert "operator Otto" in page
    assert "name, is_active" in page


def test_a_viewed_account_is_in_the_users_list(as_operator, bob, alice):
    as_operator.get(address(bob))
    assert SecurityEvent.objects.get(user=bob).kind == "account_viewed"
    assert not SecurityEvent.objects.filter(user=alice).exists()


# --- audit of tenant records ---------------------------------------------------------------------------


def test_an_opened_record_is_in_the_audit_log_of_its_workspace_only(as_operator, workspace, elsewhere, alice):
    memory = make_memory(workspace, "Likes tea.")
    assert as_operator.get(address(memory)).status_code == 200
    assert views_of(workspace) == [("operator Otto", "memory", memory.pk, "Likes tea.")]
    assert views_of(elsewhere) == []
    page = signed_in(alice).get(f"/w/{workspace.slug}/audit/").content.decode()
    assert "operator Otto" in page
    assert "viewed" in page


def test_a_list_is_in_the_log_of_each_shown_workspace_with_its_own_rows(as_operator, workspace, elsewhere):
    ours = [make_soul(workspace, "One").pk, make_soul(workspace, "Two").pk]
    theirs = make_soul(elsewhere, "Three").pk
    as_operator.get("/operator/personas/soul/")
    [event] = AuditEvent.objects.in_workspace(workspace).filter(verb="viewed")
    assert sorted((event.after or {})["ids"]) == ours
    assert event.object_label == "2 souls"
    [event] = AuditEvent.objects.in_workspace(elsewhere).filter(verb="viewed")
    assert event.after == {"ids": [theirs]}
    as_operator.get(f"/operator/personas/soul/?workspace__id__exact={elsewhere.pk}")
    assert len(views_of(workspace)) == 1
    assert len(views_of(elsewhere)) == 2


@pytest.mark.parametrize("page", ["history", "change"])
def test_every_page_of_a_record_is_audited(as_operator, workspace, page):
    soul = make_soul(workspace)
    assert as_operator.get(address(soul, page)).status_code == 200
    assert len(views_of(workspace)) == 1


@pytest.mark.parametrize("table", ["membership", "revision", "auditevent", "workspace"])
def test_lists_of_other_tables_are_audited_too(as_operator, workspace, table):
    make_soul(workspace)
    assert as_operator.get(f"/operator/personas/{table}/").status_code == 200
    assert len(views_of(workspace)) == 1


def test_a_rejected_change_shows_the_record_and_is_audited(as_operator, workspace):
    soul = make_soul(workspace)
    answer = as_operator.post(address(soul), {"name": "", "text": "", "expected": soul.revision})
    assert answer.status_code == 200
    assert len(views_of(workspace)) == 1


def test_a_record_that_does_not_exist_is_not_audited(as_operator, workspace):
    assert as_operator.get("/operator/personas/soul/999999/change/").status_code == 302
    assert views_of(workspace) == []


def test_tenant_text_does_not_go_to_the_log_of_the_admin_site(as_operator, workspace):
    soul = make_soul(workspace)
    as_operator.post(address(soul), {"name": "Canary", "text": "Canary.", "expected": soul.revision})
    assert not LogEntry.objects.exists()
    assert AuditEvent.objects.in_workspace(workspace).latest("pk").actor_label == "operator Otto"


def test_every_registered_table_of_a_workspace_is_audited(as_operator):
    """A model with a workspace that is registered with another admin class would show rows unseen."""
    from django.contrib import admin

    from personas.admin import ChangeOnlyAdmin
    from personas.models import WorkspaceOwned

    owned = [model for model in admin.site._registry if issubclass(model, WorkspaceOwned)]
    assert len(owned) > 10
    assert [m for m in owned if not isinstance(admin.site._registry[m], ChangeOnlyAdmin)] == []
