"""The page that asks for the password again: reason, workspace, a way back, and what follows it."""

from typing import Any

import pytest

from personas.models import ApiKey, User
from tests.factories import PASSWORD, signed_in

pytestmark = pytest.mark.django_db
URL = "/accounts/reauthenticate/"
NEW_KEY = "/w/harbour/keys/new/"


@pytest.fixture
def browser(alice: User) -> Any:
    """Alice is signed in and has a password, so that it is asked for again."""
    alice.set_password(PASSWORD)
    alice.save()
    return signed_in(alice)


def read(browser: Any, target: str, **headers: str) -> str:
    return str(browser.get(f"{URL}?next={target}", headers=headers).content.decode())


def test_the_page_says_why_and_has_a_way_back(browser):
    page = read(browser, "/")
    assert "Confirm it&#x27;s you" in page or "Confirm it's you" in page
    assert "This action requires a recent sign-in." in page
    assert "Cancel" in page
    assert "Confirm Access" not in page
    assert "reauthenticate to safeguard" not in page


def test_the_page_says_where_it_continues(browser, workspace):
    page = read(browser, NEW_KEY)
    assert "You will return to:" in page
    assert NEW_KEY in page
    assert f"This action in <strong><bdi>{workspace.name}</bdi></strong> requires a recent sign-in." in page


def test_a_workspace_of_others_is_not_named(browser, elsewhere):
    assert elsewhere.name not in read(browser, f"/w/{elsewhere.slug}/keys/new/")


def test_cancel_leads_back_to_the_page_before_and_not_to_the_same_question(browser, workspace):
    page = read(browser, NEW_KEY, referer="http://testserver/w/harbour/keys/?shelf=all")
    assert 'href="/w/harbour/keys/?shelf=all">Cancel</a>' in page
    # The page with the form would ask again.
    page = read(browser, NEW_KEY, referer=f"http://testserver{NEW_KEY}")
    assert 'href="/w/harbour/">Cancel</a>' in page
    # The page before is unknown.
    assert 'href="/w/harbour/">Cancel</a>' in read(browser, NEW_KEY)
    # A wrong password does not lose it.
    values = {"password": "wrong", "next": NEW_KEY, "back": "/w/harbour/keys/?shelf=all"}
    answer = browser.post(URL, values, headers={"referer": f"http://testserver{URL}?next={NEW_KEY}"})
    assert 'href="/w/harbour/keys/?shelf=all">Cancel</a>' in answer.content.decode()


@pytest.mark.parametrize("bad", ["javascript:alert(1)", "https://evil.example/", "//evil.example/"])
def test_cancel_leads_to_no_other_site(browser, bad):
    page = read(browser, bad, referer=bad)
    assert 'href="/">Cancel</a>' in page
    assert f'"{bad}">Cancel' not in page
    answer = browser.post(URL, {"password": "wrong", "next": "/", "back": bad}).content.decode()
    assert 'href="/">Cancel</a>' in answer


def test_a_refused_form_names_its_own_address_after_the_confirmation(browser, workspace):
    answer = browser.post(NEW_KEY, {"name": ""})
    assert answer["Location"].startswith(URL)
    page = browser.post(URL, {"password": PASSWORD, "next": NEW_KEY})
    html = page.content.decode()
    assert page.status_code == 422
    assert f'<body data-path="{NEW_KEY}">' in html
    assert f'action="{NEW_KEY}"' in html
    assert not ApiKey.objects.in_workspace(workspace).exists()
    # An ordinary page is at its own address.
    assert "data-path" not in browser.get("/w/harbour/keys/").content.decode()
