"""Changing an agent's release policy from reviewed to automatic is an override."""

import pytest

from personas.actors import SYSTEM_ACTOR, Actor
from personas.errors import InvalidInput
from personas.records.services import edit_record
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def careful(workspace):
    return make_agent(workspace, "careful", release_policy="reviewed")


def test_an_editor_may_require_a_review_but_not_lift_it(workspace, careful, bob):
    plain = make_agent(workspace, "plain")
    assert edit_record(plain, {"release_policy": "reviewed"}, expected=1, by=Actor.person(bob)).revision == 2
    with pytest.raises(InvalidInput) as refused:
        edit_record(careful, {"release_policy": "automatic"}, expected=1, by=Actor.person(bob))
    assert "release_policy" in refused.value.errors
    careful.refresh_from_db()
    assert (careful.release_policy, careful.revision) == ("reviewed", 1)


def test_an_editor_changes_the_rest_of_a_reviewed_agent(careful, bob):
    assert edit_record(careful, {"name": "Warier"}, expected=1, by=Actor.person(bob)).name == "Warier"


def test_an_owner_and_the_system_may_lift_the_review(workspace, careful, by_alice):
    values = {"release_policy": "automatic", "reason": "A new team."}
    lifted = edit_record(careful, values, expected=1, by=by_alice)
    assert lifted.release_policy == "automatic"
    other = make_agent(workspace, "other", release_policy="reviewed")
    assert edit_record(other, values, expected=1, by=SYSTEM_ACTOR).revision == 2


def test_neither_a_bot_nor_an_outsider_may_lift_the_review(careful, mallory):
    for by in (Actor.bot("deck"), Actor.person(mallory)):
        with pytest.raises(InvalidInput):
            edit_record(careful, {"release_policy": "automatic"}, expected=1, by=by)


def test_the_page_shows_the_error_on_the_field(workspace, careful, as_bob):
    data = {"slug": "careful", "name": "Careful", "layout": "dramatis", "release_policy": "automatic"}
    page = as_bob.post(f"/w/{workspace.slug}/agents/careful/edit/", data | {"revision": "1"})
    assert "Only an owner or an admin can lift a review." in page.content.decode()
    careful.refresh_from_db()
    assert careful.release_policy == "reviewed"
