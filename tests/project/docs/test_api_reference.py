"""The page of the API reference: rendered once per process, the same for all visitors, with an ETag."""

import pytest
from django.test import Client

from project.api import docs_views

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PAGE = "/api/v1/docs/"


def test_the_operations_are_rendered_once(monkeypatch):
    Client().get(PAGE)
    monkeypatch.setattr(docs_views, "render_to_string", lambda *_: pytest.fail("rendered again"))
    assert Client().get(PAGE).status_code == 200


def test_visitors_get_the_same_bytes_and_revalidate_them():
    one, other = Client().get(PAGE), Client().get(PAGE)
    assert one.content == other.content
    assert one["ETag"] == other["ETag"]
    assert one["Cache-Control"] == "no-cache"
    assert "Cookie" in one["Vary"]
    again = Client().get(PAGE, HTTP_IF_NONE_MATCH=one["ETag"])
    assert (again.status_code, again.content) == (304, b"")


def test_a_signed_in_user_gets_an_own_page(as_alice):
    page = as_alice.get(PAGE)
    assert page.status_code == 200
    assert "ETag" not in page
    assert page["Cache-Control"] == "private, no-store"
    assert b"dr-operation" in page.content
