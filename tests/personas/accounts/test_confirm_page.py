"""The page that asks for the password again is worded like the rest, and can be left."""

import pytest

from personas.models import User
from tests.factories import signed_in

pytestmark = pytest.mark.django_db


def test_the_page_says_why_and_has_a_way_back(alice: User):
    alice.set_password("a-long-lantern-word")
    alice.save()
    page = signed_in(alice).get("/accounts/reauthenticate/?next=/").content.decode()
    assert "Confirm it&#x27;s you" in page or "Confirm it's you" in page
    assert "This action needs a recent sign-in." in page
    assert "Cancel" in page
    assert "Confirm Access" not in page
    assert "reauthenticate to safeguard" not in page


def test_the_page_says_where_it_continues(alice: User):
    alice.set_password("a-long-lantern-word")
    alice.save()
    page = signed_in(alice).get("/accounts/reauthenticate/?next=/w/harbour/keys/new/").content.decode()
    assert "You continue at:" in page
    assert "/w/harbour/keys/new/" in page
