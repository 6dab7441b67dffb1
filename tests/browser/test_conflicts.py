"""Edit conflicts: the second user to save gets a 409, and neither text is lost."""

import pytest
from playwright.sync_api import expect

from personas.actors import Actor
from personas.models import Agent, Soul, Task
from personas.records.services import edit_record
from tests.browser.users import field, value_of
from tests.factories import make_agent, make_soul, make_task

pytestmark = pytest.mark.slow


def text_of(workspace):
    return Soul.objects.in_workspace(workspace).get(slug="calm").text


def test_the_second_editor_sees_the_other_text_and_decides_which_stays(alices, bob, workspace):
    soul = make_soul(workspace, "Calm")
    alices.go("souls/calm/edit/")
    edit_record(soul, {"text": "Bob says: breathe."}, expected=1, by=Actor.person(bob))
    alices.fill(Text="Alice says: hurry.")
    assert alices.press("Save") == 409
    notice = alices.page.get_by_role("alert")
    expect(notice).to_contain_text("Bob changed this just now, while you were editing")
    alices.sees("Bob says: breathe.")
    assert value_of(field(alices.page, "Text")) == "Alice says: hurry."
    # Without a decision nothing is overwritten.
    assert alices.press("Save") == 409
    assert text_of(workspace) == "Bob says: breathe."
    alices.follow("Discard my changes and reload")
    expect(field(alices.page, "Text")).to_have_text("Bob says: breathe.")

    edit_record(soul, {"text": "Bob says: sleep."}, expected=2, by=Actor.person(bob))
    alices.fill(Text="Alice says: hurry.")
    assert alices.press("Save") == 409
    alices.press("Overwrite with mine")
    alices.sees_message("saved")
    assert text_of(workspace) == "Alice says: hurry."
    # Both stay in the history.
    alices.go("souls/calm/history/3/")
    alices.sees("Bob says: sleep.")


@pytest.mark.hard
def test_conflicts_show_names_and_steps_instead_of_ids(alices, bob, workspace):
    keeper = make_agent(workspace, "keeper")
    pilot: Agent = make_agent(workspace, "pilot")
    task = make_task(workspace, "Sort the shed", agent=keeper)
    alices.go(f"tasks/{task.number}/edit/")
    theirs = {"agent": pilot, "steps": [{"title": "Sweep", "is_done": False}]}
    edit_record(task, theirs, expected=1, by=Actor.person(bob))
    alices.fill(Steps="[x] Dust")
    assert alices.press("Save") == 409
    sides = alices.page.locator(".dr-compare").all_inner_texts()
    assert [text.split("\n") for text in sides] == [
        ["Saved version", "Pilot", "Your version", "Keeper"],
        ["Saved version", "[ ] Sweep", "Your version", "[x] Dust"],
    ]
    alices.press("Overwrite with mine")
    alices.sees_message("saved")
    assert Task.objects.in_workspace(workspace).get(pk=task.pk).agent == keeper
