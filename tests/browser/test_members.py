"""Inviting, joining, changing roles, handing over and leaving, as people do it."""

import re
from datetime import timedelta
from importlib import import_module

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone
from playwright.sync_api import expect

from personas.models import Invitation, Membership
from personas.roles import Role
from tests.browser.people import Visit
from tests.browser.test_accounts import FRESH, link_in_last_mail
from tests.factories import PASSWORD, make_user


@pytest.fixture
def carol():
    return make_user("Carol")


def role_of(user, workspace):
    return Membership.objects.in_workspace(workspace).get(user=user).role


def invite(visit, email="carol@example.com", role="Editor"):
    visit.go("members/")
    visit.page.get_by_label("E-mail address").fill(email)
    visit.page.get_by_label("Role", exact=True).select_option(label=role)
    visit.press("Send invitation")
    visit.is_told(f"Invitation sent to {email}")
    return link_in_last_mail()


def an_hour_passes(page):
    """The password was typed so long ago that it is asked for again."""
    [cookie] = [entry for entry in page.context.cookies() if entry["name"] == settings.SESSION_COOKIE_NAME]
    session = import_module(settings.SESSION_ENGINE).SessionStore(cookie["value"])
    [entry] = session["account_authentication_methods"]
    session["account_authentication_methods"] = [entry | {"at": entry["at"] - 3600}]
    session.save()


def test_someone_new_is_invited_signs_up_and_joins(alices, visitor, workspace):
    link = invite(alices, role="Reviewer")
    carols = Visit(visitor())
    carols.go(link)
    carols.sees("Alice invites carol@example.com to this workspace as reviewer")
    carols.follow("Create an account")
    carols.fill(Email="carol@example.com", Password=FRESH, **{"Password (again)": FRESH})
    carols.press("Sign up")
    carols.press("Join as carol@example.com")
    carols.is_told("Welcome to Harbour")
    alices.go("members/")
    alices.sees("carol@example.com")
    assert (
        Membership.objects.in_workspace(workspace).get(user__email="carol@example.com").role == Role.REVIEWER
    )
    assert carols.go(link) == 410
    carols.sees("has been used already")


def test_someone_with_an_account_signs_in_and_joins(alices, visitor, workspace, carol):
    carol.set_password(PASSWORD)
    carol.save()
    carols = Visit(visitor())
    carols.go(invite(alices))
    carols.follow("I have an account")
    carols.fill(Email="carol@example.com", Password=PASSWORD)
    carols.press("Sign in")
    carols.press("Join as carol@example.com")
    assert role_of(carol, workspace) == Role.EDITOR


def test_an_invitation_asks_for_the_password_again_after_a_while(logged_in_page, alice, workspace):
    alice.set_password(PASSWORD)
    alice.save()
    alices = Visit(logged_in_page(alice), workspace.slug)
    an_hour_passes(alices.page)
    alices.go("members/")
    alices.page.get_by_label("E-mail address").fill("carol@example.com")
    alices.press("Send invitation")
    assert not mail.outbox
    alices.fill(Password=PASSWORD)
    alices.press("Confirm")
    alices.is_told("Invitation sent to carol@example.com")
    assert mail.outbox[-1].to == ["carol@example.com"]


def test_a_second_offer_to_the_same_address_is_refused_on_the_field(alices):
    invite(alices)
    alices.page.get_by_label("E-mail address").fill("carol@example.com")
    assert alices.press("Send invitation") == 422
    alices.is_refused("E-mail address", "has an open invitation already")
    alices.press("Withdraw the invitation of carol@example.com")
    alices.is_told("is withdrawn")


def test_a_tampered_or_late_link_says_what_is_wrong(alices, visitor, workspace):
    link = invite(alices)
    carols = Visit(visitor())
    assert carols.go(link[:-2] + "x/") == 410
    carols.sees("This invitation link is not valid")
    Invitation.objects.in_workspace(workspace).update(expires_at=timezone.now() - timedelta(minutes=1))
    assert carols.go(link) == 410
    carols.sees("This invitation has expired")


def test_a_link_for_someone_else_offers_to_change_accounts(alices, logged_in_page, mallory):
    link = invite(alices)
    mallorys = Visit(logged_in_page(mallory))
    mallorys.go(link)
    mallorys.sees("You are signed in as mallory@example.com; this invitation is for carol@example.com")
    mallorys.press("Sign out and continue as carol@example.com")
    mallorys.sees("Create an account")


def test_an_owner_changes_a_role_and_hands_the_workspace_over(alices, alice, bob, workspace):
    alices.go("members/")
    alices.page.get_by_label("Role of bob@example.com").select_option(label="Reviewer")
    alices.press("Change role of bob@example.com")
    alices.is_told("Bob is now reviewer")
    alices.press("Hand over ownership to bob@example.com")
    alices.is_told("Bob is now owner; you are admin")
    assert (role_of(alice, workspace), role_of(bob, workspace)) == (Role.ADMIN, Role.OWNER)
    expect(alices.page.get_by_role("button", name="Send invitation")).to_have_count(0)


def test_the_last_owner_can_neither_leave_nor_step_down(alices, alice, workspace):
    alices.go("members/")
    alices.press("Leave workspace")
    alices.is_told("A workspace needs an owner")
    alices.page.get_by_label("Role of alice@example.com").select_option(label="Viewer")
    alices.press("Change role of alice@example.com")
    alices.is_told("A workspace needs an owner")
    assert role_of(alice, workspace) == Role.OWNER


def test_a_member_leaves_and_finds_the_door_shut(bobs):
    bobs.go("members/")
    bobs.press("Leave workspace")
    bobs.is_told("You have left Harbour")
    expect(bobs.page).to_have_url(re.compile(r":\d+/$"))
    assert bobs.go() == 404


def test_an_owner_removes_a_member(alices, bob, workspace):
    alices.go("members/")
    alices.press("Remove bob@example.com")
    alices.is_told("Bob has been removed")
    assert not Membership.objects.in_workspace(workspace).filter(user=bob).exists()
