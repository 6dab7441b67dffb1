"""A new release: everything is selected, and the message of the edit is carried over."""

import pytest

from personas.records.services import edit_record
from tests.factories import BY, make_agent, make_channel, make_soul

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def soul(workspace):
    soul = make_soul(workspace, text="Be brave.")
    channels = [make_channel(workspace, "deck"), make_channel(workspace, "radio")]
    make_agent(workspace, "pilot", soul=soul, channels=channels, release_policy="reviewed")
    edit_record(soul, {"text": "Be calm."}, expected=1, by=BY, message="Calmer answers")
    return soul


def test_all_prompts_are_selected_and_the_message_is_there(as_alice, workspace, soul):
    response = as_alice.get(f"/w/{workspace.slug}/releases/new/")
    assert response.content.decode().count('type="checkbox" name="prompts"') == 2
    assert response.content.decode().count(" checked") == 2
    assert response.context["form"]["message"].value() == "Calmer answers"


def test_different_messages_are_not_mixed(as_alice, workspace, soul):
    other = make_soul(workspace, "Other", text="Be loud.")
    make_agent(
        workspace, "cook", soul=other, channels=[make_channel(workspace, "galley")], release_policy="reviewed"
    )
    edit_record(other, {"text": "Be quiet."}, expected=1, by=BY, message="Quieter")
    response = as_alice.get(f"/w/{workspace.slug}/releases/new/")
    assert not response.context["form"]["message"].value()
