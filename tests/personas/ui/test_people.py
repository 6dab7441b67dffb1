"""Pages show the names of members, and keep the stored address as tooltip."""

import pytest

from personas.records.services import edit_record
from personas.ui.display_names import get_person_name, render_person, set_people_workspace
from tests.factories import make_soul

pytestmark = pytest.mark.django_db


@pytest.fixture
def soul(workspace, by_alice):
    soul = make_soul(workspace, text="Be brave.")
    return edit_record(soul, {"text": "Be calm."}, expected=1, by=by_alice)


@pytest.mark.parametrize(
    "page", ["souls/{slug}/history/", "souls/{slug}/history/2/", "souls/{slug}/", "audit/"]
)
def test_authors_are_shown_by_name(as_bob, workspace, soul, page):
    html = as_bob.get(f"/w/{workspace.slug}/{page.format(slug=soul.slug)}").content.decode()
    main = html.partition("<main")[2].partition("</main>")[0]
    assert '<bdi title="alice@example.com">Alice</bdi>' in main
    assert ">alice@example.com<" not in main


def test_a_label_of_nobody_is_shown_as_it_is(workspace):
    set_people_workspace(workspace.pk)
    try:
        assert get_person_name("bot:scout") == "bot:scout"
        assert get_person_name("gone@example.com") == "gone@example.com"
        assert render_person("<b>@x") == "<bdi>&lt;b&gt;@x</bdi>"
    finally:
        set_people_workspace(None)


def test_names_are_those_of_the_workspace_only(elsewhere, mallory, workspace):
    set_people_workspace(workspace.pk)
    try:
        assert get_person_name(mallory.email) == mallory.email
    finally:
        set_people_workspace(None)
    assert get_person_name("alice@example.com") == "alice@example.com"
