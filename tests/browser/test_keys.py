"""Creating, copying, rotating and revoking API keys, with and without JavaScript."""

import re
from importlib import import_module

import pytest
from django.conf import settings
from playwright.sync_api import Error, expect

from personas.api_keys.format import is_well_formed_key, key_digest
from personas.api_keys.services import create_key, revoke_key
from personas.models import ApiKey
from tests.browser.page_checks import SOME_OR_ALL, axe_violations, find_overflows, sample
from tests.browser.users import Visit
from tests.factories import BY, PASSWORD, make_agent, make_channel

pytestmark = pytest.mark.slow

PAGES = ("", "rotate/", "revoke/")
CLIPBOARD_CONTAINS = "async (text) => (await navigator.clipboard.readText()).includes(text)"


def confirm(visit, path, password):
    """Open a page that requires the password again, and confirm it."""
    visit.go(path)
    visit.fill(Password=password)
    visit.press("Confirm")
    visit.page.wait_for_url(f"**/{path}")


def an_hour_passes(page):
    """Date the password confirmations back by an hour, so that they have expired."""
    [cookie] = [entry for entry in page.context.cookies() if entry["name"] == settings.SESSION_COOKIE_NAME]
    session = import_module(settings.SESSION_ENGINE).SessionStore(cookie["value"])
    entries = session["account_authentication_methods"]
    session["account_authentication_methods"] = [entry | {"at": entry["at"] - 3600} for entry in entries]
    session.save()


def allow_all_agents(visit):
    visit.page.get_by_role("group", name="Agents", exact=True).get_by_label(
        "All, including ones added later"
    ).check()


def make_key(visit, name="Front desk"):
    visit.go("keys/new/")
    visit.fill(Name=name)
    allow_all_agents(visit)
    assert visit.press("Create key") == 200
    secret = visit.page.get_by_label(f"Secret for {name}").input_value()
    assert is_well_formed_key(secret)
    return secret


@SOME_OR_ALL
def test_key_pages_are_accessible(alices, workspace, is_all):
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    juniper, ended = (create_key(workspace, name, {}, by=BY)[0] for name in ("Juniper", "Ended"))
    revoke_key(ended, by=BY)
    visit, problems = alices, []
    paths = ("?shelf=all", "?q=nothing-like-it", "new/", *(f"{juniper.pk}/{page}" for page in PAGES))
    for path in sample(paths):
        visit.go(f"keys/{path}")
        problems += axe_violations(visit.page) + find_overflows(visit.page)
    make_key(visit)
    problems += axe_violations(visit.page) + find_overflows(visit.page)
    visit.go("keys/new/")
    assert visit.press("Create key") == 422
    problems += axe_violations(visit.page)
    assert not problems, "\n\n".join(problems)


def test_a_key_is_copied_never_shown_again_rotated_with_overlap_and_revoked(alices, workspace):
    make_agent(workspace, "pilot")
    page = alices.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    secret = make_key(alices)
    page.get_by_role("button", name="Copy key").click()
    # The label of the button shows it too, but only for a short time.
    expect(page.locator("#dr-told")).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == secret
    page.get_by_role("button", name="Copy the code for curl").click()
    page.wait_for_function(CLIPBOARD_CONTAINS, arg="Authorization: Bearer $DRAMATIS_KEY")
    alices.follow("Done")
    alices.sees("Front desk")
    # The response is not cached: the browser would have to send the form again.
    with pytest.raises(Error, match="ERR_CACHE_MISS"):
        page.go_back()
    page.wait_for_url(re.compile("^chrome-error:"), wait_until="commit")
    assert ApiKey.objects.in_workspace(workspace).get().digest == key_digest(secret)

    alices.go("keys/")
    alices.follow("Front desk")
    alices.follow("Rotate")
    alices.fill(**{"Overlap with the old key": "3 days"})
    assert alices.press("Rotate") == 200
    alices.sees("The old key Front desk is valid until")
    assert alices.page.get_by_label("Secret for Front desk 2").input_value() != secret
    alices.go("keys/")
    alices.follow("Revoke Front desk 2")
    alices.sees("The key stops working immediately")
    alices.press("Revoke")
    alices.sees_message("“Front desk 2” revoked")
    expect(alices.page.get_by_role("main").get_by_role("table")).not_to_contain_text("Front desk 2")


@pytest.mark.hard
def test_without_script_the_secret_can_be_selected(logged_in_page, alice, workspace):
    visit = Visit(logged_in_page(alice, java_script_enabled=False), workspace.slug)
    make_key(visit)
    secret = visit.page.get_by_label("Secret for Front desk")
    expect(secret).to_have_attribute("readonly", "")
    expect(visit.page.get_by_role("button", name="Copy key")).to_be_hidden()


@pytest.mark.hard
def test_creating_a_key_requires_the_password_and_explains_forbidden_permissions(
    logged_in_page, alice, workspace
):
    alice.set_password(PASSWORD)
    alice.save()
    alices = Visit(logged_in_page(alice), workspace.slug)
    confirm(alices, "keys/new/", PASSWORD)
    alices.fill(Name="Late")
    allow_all_agents(alices)
    an_hour_passes(alices.page)
    alices.press("Create key")
    assert not ApiKey.objects.in_workspace(workspace).exists()
    alices.fill(Password=PASSWORD)
    alices.press("Confirm")
    # The address is that of the page, and not of the confirmation: a reload does not send the password again.
    expect(alices.page).to_have_url(re.compile(r"/w/[^/]+/keys/new/$"))
    secret = alices.page.get_by_label("Secret for Late").input_value()
    assert ApiKey.objects.in_workspace(workspace).get().digest == key_digest(secret)

    alices.go("keys/new/")
    alices.fill(Name="Too much")
    allow_all_agents(alices)
    alices.page.get_by_label("Approve (admin keys only)").check()
    assert alices.press("Create key") == 422
    alices.sees("A bot key cannot have the “approve” permission. Use an admin key.")
    alices.page.get_by_role("radio", name="Admin", exact=True).check()
    assert alices.press("Create key") == 200
