"""Pages with text of a workspace are kept by no cache."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["", "agents/", "ledger/", "no-such-page/"])
def test_pages_of_a_workspace_are_not_stored(as_alice, workspace, path):
    response = as_alice.get(f"/w/{workspace.slug}/{path}")
    cache_control = response["Cache-Control"]
    assert "no-store" in cache_control
    assert "private" in cache_control


def test_pages_that_set_the_header_keep_theirs(as_alice, workspace):
    assert "no-store" in as_alice.get(f"/w/{workspace.slug}/search/")["Cache-Control"]


def test_the_health_page_has_its_own_header():
    assert "no-cache" in Client().get("/healthz")["Cache-Control"]
