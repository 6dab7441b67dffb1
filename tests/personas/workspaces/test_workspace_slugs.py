"""The slug of a new workspace: reserved words, and slugs of own workspaces."""

import pytest

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("new", "“new” is reserved. Choose another slug."),
        ("harbour", "You already have a workspace with the slug “harbour”. Choose another slug."),
    ],
)
def test_a_slug_is_rejected_with_what_to_do(as_alice, workspace, slug, message):
    page = as_alice.post("/workspaces/new/", {"name": "Again", "slug": slug})
    assert page.status_code == 422
    assert message in page.content.decode()
