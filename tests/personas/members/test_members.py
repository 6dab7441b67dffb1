"""Members: invitations, roles, transfer of ownership, removal."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from personas.actors import Actor
from personas.errors import DomainError, InvalidInput
from personas.members.services import (
    BadInvitation,
    accept_invitation,
    build_invitation_token,
    change_role,
    invite_member,
    remove_member,
    transfer_ownership,
    withdraw_invitation,
)
from personas.models import Invitation, Membership, User
from personas.roles import Role
from personas.selectors import list_open_invitations
from tests.factories import PASSWORD, join, make_user, signed_in
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


def membership(workspace, user):
    return Membership.objects.in_workspace(workspace).get(user=user)


def test_an_invited_person_joins_in_the_offered_role(workspace, by_alice):
    carol = make_user("Carol")
    token = build_invitation_token(invite_member(workspace, "Carol@Example.com", Role.REVIEWER, by=by_alice))
    accept_invitation(token, carol)
    assert membership(workspace, carol).role == Role.REVIEWER


def test_an_invitation_works_once(workspace, by_alice):
    carol = make_user("Carol")
    token = build_invitation_token(invite_member(workspace, carol.email, Role.VIEWER, by=by_alice))
    accept_invitation(token, carol)
    with pytest.raises(BadInvitation, match="already been used"):
        accept_invitation(token, carol)


def test_an_invitation_is_for_one_address(workspace, by_alice, mallory):
    token = build_invitation_token(invite_member(workspace, "carol@example.com", Role.VIEWER, by=by_alice))
    with pytest.raises(BadInvitation, match="was sent to carol"):
        accept_invitation(token, mallory)
    assert not Membership.objects.in_workspace(workspace).filter(user=mallory).exists()


def test_a_tampered_an_expired_and_a_withdrawn_link_are_refused(workspace, by_alice):
    carol = make_user("Carol")
    offer = invite_member(workspace, carol.email, Role.VIEWER, by=by_alice)
    token = build_invitation_token(offer)
    with pytest.raises(BadInvitation, match="not valid"):
        accept_invitation(token[:-2] + ("AA" if not token.endswith("AA") else "BB"), carol)
    Invitation.objects.in_workspace(workspace).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(BadInvitation, match="expired"):
        accept_invitation(token, carol)
    Invitation.objects.in_workspace(workspace).update(expires_at=timezone.now() + timedelta(days=1))
    withdraw_invitation(offer, by=by_alice)
    with pytest.raises(BadInvitation, match="withdrawn"):
        accept_invitation(token, carol)


def test_a_member_or_an_invited_address_is_not_invited_again(workspace, by_alice, bob):
    with pytest.raises(InvalidInput, match="already a member"):
        invite_member(workspace, bob.email, Role.VIEWER, by=by_alice)
    invite_member(workspace, "carol@example.com", Role.VIEWER, by=by_alice)
    with pytest.raises(InvalidInput, match="already has a pending invitation"):
        invite_member(workspace, "carol@example.com", Role.VIEWER, by=by_alice)


def test_an_expired_invitation_does_not_prevent_a_new_one(workspace, by_alice):
    invite_member(workspace, "carol@example.com", Role.VIEWER, by=by_alice)
    Invitation.objects.in_workspace(workspace).update(expires_at=timezone.now() - timedelta(days=1))
    invite_member(workspace, "carol@example.com", Role.EDITOR, by=by_alice)


@pytest.mark.usefixtures("stopped_clock")
def test_invitations_of_one_moment_are_listed_newest_first(workspace, by_alice):
    addresses = [f"{name}@example.com" for name in ("ann", "cleo", "ben")]
    for address in addresses:
        invite_member(workspace, address, Role.VIEWER, by=by_alice)
    assert [row.email for row in list_open_invitations(workspace)] == addresses[::-1]


def test_the_last_owner_can_neither_leave_nor_step_down(workspace, alice, by_alice):
    mine = membership(workspace, alice)
    with pytest.raises(DomainError, match="needs an owner"):
        remove_member(mine, by=by_alice)
    with pytest.raises(DomainError, match="needs an owner"):
        change_role(mine, Role.ADMIN, by=by_alice)


def test_ownership_is_transferred_in_one_transaction(workspace, alice, bob, by_alice):
    transfer_ownership(membership(workspace, alice), membership(workspace, bob), by=by_alice)
    assert membership(workspace, bob).role == Role.OWNER
    assert membership(workspace, alice).role == Role.ADMIN


def test_one_of_two_owners_may_leave(workspace, alice, bob, by_alice):
    change_role(membership(workspace, bob), Role.OWNER, by=by_alice)
    remove_member(membership(workspace, alice), by=by_alice)
    assert not Membership.objects.in_workspace(workspace).filter(user=alice).exists()


def test_an_unknown_role_is_refused(workspace, bob, by_alice):
    with pytest.raises(InvalidInput, match="is not a valid role"):
        change_role(membership(workspace, bob), "emperor", by=by_alice)


def test_the_email_contains_a_working_link(workspace, as_alice):
    carol = make_user("Carol")
    answer = as_alice.post(f"/w/{workspace.slug}/members/invite/", {"email": carol.email, "role": "editor"})
    assert answer.status_code == 302
    [email] = mail.outbox
    assert email.to == [carol.email]
    link = next(word for word in email.body.split() if "/join/" in word)
    browser = signed_in(carol)
    assert "Harbour" in browser.get(link).content.decode()
    assert browser.post(link).status_code == 302
    assert membership(workspace, carol).role == Role.EDITOR


def test_visiting_the_link_accepts_nothing(workspace, by_alice):
    carol = make_user("Carol")
    token = build_invitation_token(invite_member(workspace, carol.email, Role.VIEWER, by=by_alice))
    signed_in(carol).get(f"/join/{token}/")
    assert not Membership.objects.in_workspace(workspace).filter(user=carol).exists()


def test_a_withdrawn_invitation_does_not_let_its_opener_sign_up(client, workspace, by_alice, settings):
    settings.DRAMATIS_SIGNUP = False
    offer = invite_member(workspace, "carol@example.com", Role.VIEWER, by=by_alice)
    client.get(f"/join/{build_invitation_token(offer)}/")
    assert 'name="password1"' in client.get("/accounts/signup/").content.decode()
    withdraw_invitation(offer, by=by_alice)
    data = {"email": "carol@example.com", "password1": PASSWORD, "password2": PASSWORD}
    assert 'name="password1"' not in client.get("/accounts/signup/").content.decode()
    client.post("/accounts/signup/", data)
    assert not User.objects.filter(email="carol@example.com").exists()
    assert "account_verified_email" not in client.session


def test_a_new_workspace_does_not_reveal_the_addresses_of_others(as_alice, workspace, elsewhere):
    answer = as_alice.post("/workspaces/new/", {"name": "Quay", "slug": elsewhere.slug})
    assert answer.status_code == 302
    assert answer["Location"].startswith(f"/w/{elsewhere.slug}-")
    own = as_alice.post("/workspaces/new/", {"name": "Quay", "slug": workspace.slug})
    assert own.status_code == 422


def test_a_bad_link_says_why(client, db):
    answer = client.get("/join/not-a-token/")
    assert answer.status_code == 410
    assert "not valid" in answer.content.decode()


def test_members_are_managed_only_soon_after_signing_in(workspace, alice, client):
    alice.set_password(PASSWORD)
    alice.save()
    client.force_login(alice)
    answer = client.post(f"/w/{workspace.slug}/members/invite/", {"email": "c@example.com", "role": "viewer"})
    assert answer.status_code == 302
    assert "/reauthenticate/" in answer["Location"]
    assert not Invitation.objects.in_workspace(workspace).exists()


def test_a_removed_member_loses_access_at_once(workspace, as_bob, bob, by_alice):
    assert as_bob.get(f"/w/{workspace.slug}/").status_code == 200
    remove_member(membership(workspace, bob), by=by_alice)
    assert as_bob.get(f"/w/{workspace.slug}/").status_code == 404


def test_a_lowered_role_applies_from_the_next_request(workspace, as_bob, bob, by_alice):
    assert as_bob.get(f"/w/{workspace.slug}/souls/new/").status_code == 200
    change_role(membership(workspace, bob), Role.VIEWER, by=by_alice)
    assert as_bob.get(f"/w/{workspace.slug}/souls/new/").status_code == 403


def test_owners_need_a_second_factor_where_it_is_required(workspace, as_alice, as_bob, settings):
    settings.DRAMATIS_REQUIRE_OWNER_MFA = True
    answer = as_alice.get(f"/w/{workspace.slug}/")
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/2fa/")
    assert as_bob.get(f"/w/{workspace.slug}/").status_code == 200


def test_only_a_user_can_invite(workspace):
    with pytest.raises(DomainError, match="Only a member"):
        invite_member(workspace, "c@example.com", Role.VIEWER, by=Actor.bot("scout"))


@pytest.mark.slow
def test_every_role_has_exactly_its_permissions(workspace):
    pages = {"souls/new/": {"admin", "editor"}, "members/": set(Role.values) - {"owner"}, "settings/": set()}
    for role in ("admin", "editor", "reviewer", "viewer"):
        user = make_user(role.title())
        join(workspace, user, role)
        browser = signed_in(user)
        for page, allowed in pages.items():
            expected = 200 if role in allowed else 403
            assert browser.get(f"/w/{workspace.slug}/{page}").status_code == expected, (role, page)
