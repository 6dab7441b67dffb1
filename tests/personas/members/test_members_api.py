"""Members and invitations by API: only an owner's key manages them, and no key makes an owner."""

import pytest
from django.core import mail

from personas.api_keys.format import BOT
from personas.models import AuditEvent, Invitation, Membership
from personas.roles import Role
from tests.factories import join, make_user, signed_in
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def carol(workspace):
    return join(workspace, make_user("Carol"), Role.VIEWER)


def role_of(member):
    return Membership.objects.in_workspace(member.workspace_id).get(pk=member.pk).role


def verbs_of(workspace, kind):
    rows = AuditEvent.objects.in_workspace(workspace).filter(kind=kind).order_by("pk")
    return list(rows.values_list("verb", flat=True))


def open_invitations(workspace):
    return Invitation.objects.in_workspace(workspace).filter(withdrawn_at=None)


# --- members -------------------------------------------------------------------------------------------


def test_members_are_listed_and_found_by_name_and_role(admin, alice, bob, carol):
    found = {row["email"]: row["role"] for row in admin.get("members").json()["items"]}
    assert found[alice.email] == "owner"
    assert found[carol.user.email] == "viewer"
    assert [row["id"] for row in admin.get("members?q=carol&role=viewer").json()["items"]] == [carol.pk]
    one = admin.get(f"members/{carol.pk}")
    assert one.json()["joined_at"]
    assert one["ETag"].startswith(one.json()["etag"].rstrip('"'))


def test_a_role_is_changed_with_the_etag_of_the_member(admin, workspace, carol):
    etag = admin.get(f"members/{carol.pk}")["ETag"]
    changed = admin.patch(f"members/{carol.pk}", {"role": "reviewer"}, etag)
    assert (changed.status_code, changed.json()["role"]) == (200, "reviewer"), changed.content
    assert admin.patch(f"members/{carol.pk}", {"role": "editor"}, etag).status_code == 412
    assert admin.call("PATCH", f"members/{carol.pk}", {"role": "editor"}).status_code == 428
    assert role_of(carol) == "reviewer"
    event = AuditEvent.objects.in_workspace(workspace).get(kind="member", verb="role changed")
    assert "(key Key 1)" in event.actor_label


def test_a_removed_member_is_gone_and_the_keys_of_the_member_are_revoked(admin, key_for, workspace, carol):
    own = key_for(workspace, carol.user)
    assert own.get("agents").status_code == 200
    assert admin.delete(f"members/{carol.pk}", "*").status_code == 204
    assert own.get("agents").status_code == 401
    assert admin.get(f"members/{carol.pk}").status_code == 404
    assert verbs_of(workspace, "member") == ["removed"]


def make_owner(workspace, user):
    """Give a member the role owner, as an owner does in the browser."""
    member = Membership.objects.in_workspace(workspace).get(user=user)
    Membership.objects.in_workspace(workspace).filter(pk=member.pk).update(role=Role.OWNER)
    return member


def test_no_key_changes_or_removes_an_owner(admin, workspace, alice, bob):
    """A stolen key must not leave the workspace to its thief: neither another owner nor its own user."""
    for member in (make_owner(workspace, bob), make_owner(workspace, alice)):
        url = f"members/{member.pk}"
        # Removed at once, and in two steps: first lowered, then removed.
        for answer in (
            admin.delete(url, "*"),
            admin.patch(url, {"role": "viewer"}, "*"),
            admin.delete(url, "*"),
        ):
            assert answer.status_code == 403, answer.content
            assert answer.json()["code"] == "not_allowed"
            assert "Keys cannot change owners." in answer.json()["detail"]
            assert f"/w/{workspace.slug}/members/" in answer.json()["detail"]
        assert role_of(member) == "owner"
    assert verbs_of(workspace, "member") == []


def test_a_member_who_became_an_owner_after_the_key_read_it_is_not_removed(
    admin, workspace, bob, monkeypatch
):
    """The role is checked again in the transaction: the ETag `*` says nothing about it."""
    member = Membership.objects.in_workspace(workspace).get(user=bob)
    stale = Membership.objects.in_workspace(workspace).select_related("user").get(pk=member.pk)
    make_owner(workspace, bob)
    monkeypatch.setattr("personas.members.api.find_row", lambda rows, key: stale)
    assert admin.delete(f"members/{member.pk}", "*").status_code == 403
    assert admin.patch(f"members/{member.pk}", {"role": "viewer"}, "*").status_code == 403
    assert role_of(member) == "owner"


def test_no_key_makes_an_owner(admin, workspace, carol):
    """An owner could remove the others, so the browser asks for the password first."""
    answers = [
        admin.patch(f"members/{carol.pk}", {"role": "owner"}, "*"),
        admin.post("invitations", {"email": "dora@example.com", "role": "owner"}),
    ]
    offer = admin.post("invitations", {"email": "erik@example.com", "role": "viewer"}).json()
    Invitation.objects.in_workspace(workspace).filter(pk=offer["id"]).update(role="owner")
    answers.append(admin.post(f"invitations/{offer['id']}:resend"))
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        assert f"/w/{workspace.slug}/members/" in answer.json()["detail"]
    assert role_of(carol) == "viewer"
    assert [row.pk for row in open_invitations(workspace)] == [offer["id"]]


def test_an_owner_whose_role_is_sent_back_unchanged_stays_owner(admin, workspace, bob):
    member = make_owner(workspace, bob)
    assert admin.patch(f"members/{member.pk}", {"role": "owner"}, "*").status_code == 200


def test_no_key_withdraws_an_invitation_as_owner(admin, workspace):
    offer = admin.post("invitations", {"email": "erik@example.com", "role": "viewer"}).json()
    Invitation.objects.in_workspace(workspace).filter(pk=offer["id"]).update(role="owner")
    answer = admin.post(f"invitations/{offer['id']}:withdraw")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert [row.pk for row in open_invitations(workspace)] == [offer["id"]]


@pytest.mark.parametrize("limit", [{"verbs": ["read", "write", "approve"]}, {"labels": ["staging"]}])
def test_members_are_managed_only_with_an_owners_key_that_may_manage(limit, key_for, workspace, alice, carol):
    key, admin_role = key_for(workspace, alice, **limit), make_user("Arne")
    join(workspace, admin_role, Role.ADMIN)
    for other in (key, key_for(workspace, admin_role), key_for(workspace, alice, BOT)):
        writes = [
            other.patch(f"members/{carol.pk}", {"role": "editor"}, "*"),
            other.delete(f"members/{carol.pk}", "*"),
            other.post("invitations", {"email": "dora@example.com", "role": "viewer"}),
        ]
        assert {answer.status_code for answer in writes} == {403}
    assert role_of(carol) == "viewer"
    assert not mail.outbox


# --- invitations ---------------------------------------------------------------------------------------


def test_an_invitation_by_key_is_sent_and_leads_into_the_workspace(
    admin, workspace, django_capture_on_commit_callbacks, settings
):
    settings.PUBLIC_URL = "https://dramatis.example"
    with django_capture_on_commit_callbacks(execute=True):
        answer = admin.post("invitations", {"email": "Dora@Example.com", "role": "editor"})
    assert answer.status_code == 201, answer.content
    assert answer["Location"] == f"/api/v1/invitations/{answer.json()['id']}"
    assert answer.json()["email"] == "dora@example.com"
    assert [row["id"] for row in admin.get("invitations").json()["items"]] == [answer.json()["id"]]
    [email] = mail.outbox
    link = next(word for word in email.body.split() if "/join/" in word)
    assert link.startswith("https://dramatis.example/join/")
    dora = make_user("Dora")
    assert signed_in(dora).post(link.removeprefix("https://dramatis.example")).status_code == 302
    assert Membership.objects.in_workspace(workspace).get(user=dora).role == "editor"
    assert verbs_of(workspace, "invitation") == ["invited", "accepted"]


def test_a_retry_with_the_same_idempotency_key_sends_one_email(admin, django_capture_on_commit_callbacks):
    body = {"email": "dora@example.com", "role": "editor"}
    with django_capture_on_commit_callbacks(execute=True):
        answers = [admin.post("invitations", body, Idempotency_Key="dora-1") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("email", ["dora", "dora@", "a b@example.com", "alice@example.com"])
def test_an_invalid_address_and_that_of_a_member_are_rejected(email, admin, workspace):
    answer = admin.post("invitations", {"email": email, "role": "viewer"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/email")
    assert not open_invitations(workspace).exists()


def test_an_invitation_sent_again_replaces_the_first(admin, workspace, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        first = admin.post("invitations", {"email": "dora@example.com", "role": "viewer"}).json()
        second = admin.post(f"invitations/{first['id']}:resend")
    assert second.status_code == 201, second.content
    assert [row.pk for row in open_invitations(workspace)] == [second.json()["id"]]
    old, new = [next(word for word in email.body.split() if "/join/" in word) for email in mail.outbox]
    browser = signed_in(make_user("Dora"))
    path = lambda link: "/join/" + link.partition("/join/")[2]  # noqa: E731
    assert browser.post(path(old)).status_code == 410
    assert browser.post(path(new)).status_code == 302
    assert admin.post(f"invitations/{first['id']}:resend").status_code == 404


def test_the_page_sends_an_invitation_again(as_alice, workspace, admin):
    first = admin.post("invitations", {"email": "dora@example.com", "role": "viewer"}).json()
    url = f"/w/{workspace.slug}/members/invitations/{first['id']}/resend/"
    assert as_alice.post(url).status_code == 302
    assert len(mail.outbox) == 1
    assert open_invitations(workspace).get().pk != first["id"]


def test_a_withdrawn_invitation_is_gone(admin, workspace):
    offer = admin.post("invitations", {"email": "dora@example.com", "role": "viewer"}).json()
    assert admin.post(f"invitations/{offer['id']}:withdraw").status_code == 204
    assert admin.get(f"invitations/{offer['id']}").status_code == 404
    assert not open_invitations(workspace).exists()


def test_an_email_that_cannot_be_sent_is_reported_and_the_invitation_stays(
    admin, as_alice, workspace, settings
):
    """No mail server is at this port."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    page = as_alice.post(
        f"/w/{workspace.slug}/members/invite/", {"email": "dora@example.com", "role": "viewer"}, follow=True
    )
    assert "could not be sent" in page.content.decode()
    assert open_invitations(workspace).get().email == "dora@example.com"


# --- planted fault -------------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_key_that_changes_owners_is_found(admin, workspace, alice, bob, monkeypatch):
    monkeypatch.setattr("personas.members.services.check_owner_change", lambda *args, **values: None)
    with pytest.raises(AssertionError, match="== 403"):
        test_no_key_changes_or_removes_an_owner(admin, workspace, alice, bob)
