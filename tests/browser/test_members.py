"""Members: inviting, joining, changing roles, transferring ownership and leaving."""

import re
from datetime import timedelta
from importlib import import_module

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone
from playwright.sync_api import expect

from personas.models import Invitation, Membership, User
from personas.roles import Role
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.test_accounts import NEW_PASSWORD, link_in_last_mail
from tests.browser.users import Visit
from tests.factories import PASSWORD, join, make_user

pytestmark = pytest.mark.slow


def role_of(user, workspace):
    return Membership.objects.in_workspace(workspace).get(user=user).role


def invite(visit, email="carol@example.com", role="Editor"):
    visit.go("members/")
    visit.page.get_by_label("Email address").fill(email)
    visit.page.get_by_label("Role", exact=True).select_option(label=role)
    visit.press("Send invitation")
    visit.sees_message(f"Invitation sent to {email}")
    return link_in_last_mail()


def an_hour_passes(page):
    """Date the password confirmation back by an hour, so that it has expired."""
    [cookie] = [entry for entry in page.context.cookies() if entry["name"] == settings.SESSION_COOKIE_NAME]
    session = import_module(settings.SESSION_ENGINE).SessionStore(cookie["value"])
    [entry] = session["account_authentication_methods"]
    session["account_authentication_methods"] = [entry | {"at": entry["at"] - 3600}]
    session.save()


@pytest.mark.hard
def test_a_new_user_and_an_existing_user_join_by_invitation(alices, visitor, workspace):
    dora = make_user("Dora")
    dora.set_password(PASSWORD)
    dora.save()
    link = invite(alices, role="Reviewer")
    guests = Visit(visitor())
    guests.go(link)
    guests.sees("Alice invited carol@example.com to this workspace as reviewer")
    guests.follow("Create an account")
    guests.fill(Email="carol@example.com", Password=NEW_PASSWORD, **{"Password (again)": NEW_PASSWORD})
    guests.press("Sign up")
    guests.press("Join as carol@example.com")
    guests.sees_message("Welcome to Harbour")
    assert role_of(User.objects.get(email="carol@example.com"), workspace) == Role.REVIEWER
    assert guests.go(link) == 410
    guests.sees("has already been used")

    guests.page.context.clear_cookies()
    guests.go(invite(alices, "dora@example.com"))
    alices.sees("carol@example.com")
    guests.follow("Sign in to your account")
    guests.fill(Email="dora@example.com", Password=PASSWORD)
    guests.press("Sign in")
    guests.press("Join as dora@example.com")
    assert role_of(dora, workspace) == Role.EDITOR


@pytest.mark.hard
def test_an_invitation_is_for_one_user_and_expires(alice, logged_in_page, mallory, workspace):
    alice.set_password(PASSWORD)
    alice.save()
    alices = Visit(logged_in_page(alice), workspace.slug)
    an_hour_passes(alices.page)
    alices.go("members/")
    alices.page.get_by_label("Email address").fill("carol@example.com")
    alices.press("Send invitation")
    assert not mail.outbox
    alices.fill(Password=PASSWORD)
    alices.press("Confirm")
    alices.sees_message("Invitation sent to carol@example.com")
    assert mail.outbox[-1].to == ["carol@example.com"]
    alices.page.get_by_label("Email address").fill("carol@example.com")
    assert alices.press("Send invitation") == 422
    alices.sees_field_error("Email address", "already has a pending invitation")

    # A link for another user offers to switch accounts.
    link = link_in_last_mail()
    mallorys = Visit(logged_in_page(mallory))
    mallorys.go(link)
    mallorys.sees("You are signed in as mallory@example.com. This invitation is for carol@example.com")
    mallorys.press("Sign out and continue as carol@example.com")
    mallorys.sees("Create an account")
    # A tampered or expired link says what is wrong.
    assert mallorys.go(link[:-2] + "x/") == 410
    mallorys.sees("This invitation link is not valid")
    Invitation.objects.in_workspace(workspace).update(expires_at=timezone.now() - timedelta(minutes=1))
    assert mallorys.go(link) == 410
    mallorys.sees("This invitation has expired")
    alices.press("Withdraw the invitation for carol@example.com")
    alices.sees_message("withdrawn")


@pytest.mark.hard
def test_an_owner_removes_a_member_changes_a_role_and_leaves_only_a_workspace_with_an_owner(
    alices, alice, bob, workspace
):
    carol = make_user("Carol")
    join(workspace, carol)
    alices.go("members/")
    alices.press("Leave workspace")
    alices.sees_message("A workspace needs an owner")
    alices.page.get_by_label("Role for alice@example.com").select_option(label="Viewer")
    alices.press("Change role for alice@example.com")
    alices.sees_message("A workspace needs an owner")
    assert role_of(alice, workspace) == Role.OWNER

    alices.press("Remove carol@example.com")
    alices.sees_message("Carol has been removed")
    assert not Membership.objects.in_workspace(workspace).filter(user=carol).exists()
    alices.page.get_by_label("Role for bob@example.com").select_option(label="Reviewer")
    alices.press("Change role for bob@example.com")
    alices.sees_message("Bob now has the reviewer role")
    alices.press("Transfer ownership to bob@example.com")
    alices.sees_message("Bob is now an owner, and you are an admin")
    assert (role_of(alice, workspace), role_of(bob, workspace)) == (Role.ADMIN, Role.OWNER)
    expect(alices.page.get_by_role("button", name="Send invitation")).to_have_count(0)


def test_a_member_leaves_and_loses_access(bobs):
    bobs.go("members/")
    leave = bobs.page.get_by_role("main").get_by_role("button", name="Leave workspace")
    leave.click()
    question = bobs.page.get_by_role("dialog", name="Are you sure?")
    expect(question).to_contain_text("You will need a new invitation to rejoin.")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    problems = axe_violations(bobs.page) + find_overflows(bobs.page)
    assert not problems, "\n\n".join(problems)
    question.get_by_role("button", name="Cancel").click()
    expect(leave).to_be_focused()
    bobs.press("Leave workspace")
    bobs.sees_message("You have left Harbour")
    expect(bobs.page).to_have_url(re.compile(r":\d+/$"))
    assert bobs.go() == 404
