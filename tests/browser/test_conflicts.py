"""Two people saving at once: the later one is told, and neither text is lost."""

import pytest
from playwright.sync_api import expect

from personas.models import Soul, Task
from tests.browser.people import Visit, field, value_of
from tests.factories import make_agent, make_soul, make_task


@pytest.fixture
def late(alices, bobs, workspace):
    """Alice has opened the soul's form; Bob has saved another text since."""
    make_soul(workspace, "Calm")
    alices.go("souls/calm/edit/")
    bobs.go("souls/calm/edit/")
    bobs.fill(Text="Bob says: breathe.")
    bobs.press("Save")
    bobs.is_told("saved")
    alices.fill(Text="Alice says: hurry.")
    assert alices.press("Save") == 409
    return alices


def text_of(workspace):
    return Soul.objects.in_workspace(workspace).get(slug="calm").text


def test_the_later_one_sees_the_others_text_and_keeps_their_own(late: Visit, workspace):
    notice = late.page.get_by_role("alert")
    expect(notice).to_contain_text("bob@example.com changed this just now, while you were editing")
    late.sees("Bob says: breathe.")
    assert value_of(field(late.page, "Text")) == "Alice says: hurry."
    assert text_of(workspace) == "Bob says: breathe."


def test_saving_again_without_a_decision_still_overwrites_nothing(late: Visit, workspace):
    assert late.press("Save") == 409
    assert text_of(workspace) == "Bob says: breathe."


def test_the_later_one_may_save_over_it_and_both_stay_in_the_history(late: Visit, workspace):
    late.press("Save mine over it")
    late.is_told("saved")
    assert text_of(workspace) == "Alice says: hurry."
    late.go("souls/calm/history/2/")
    late.sees("Bob says: breathe.")


def test_the_later_one_may_take_theirs_instead(late: Visit):
    late.follow("Take theirs and reload")
    expect(field(late.page, "Text")).to_have_text("Bob says: breathe.")


def test_links_and_steps_are_compared_in_words_not_in_numbers(alices, bobs, workspace):
    keeper = make_agent(workspace, "keeper")
    make_agent(workspace, "pilot")
    task = make_task(workspace, "Sort the shed", agent=keeper)
    alices.go(f"tasks/{task.number}/edit/")
    bobs.go(f"tasks/{task.number}/edit/")
    bobs.fill(**{"Assigned to": "Pilot", "Steps": "Sweep"})
    bobs.press("Save")
    bobs.is_told("saved")
    alices.fill(Steps="[x] Dust")
    assert alices.press("Save") == 409
    sides = alices.page.locator(".dr-compare").all_inner_texts()
    assert [text.split("\n") for text in sides] == [
        ["Saved now", "Pilot", "Yours", "Keeper"],
        ["Saved now", "[ ] Sweep", "Yours", "[x] Dust"],
    ]
    alices.press("Save mine over it")
    alices.is_told("saved")
    assert Task.objects.in_workspace(workspace).get(pk=task.pk).agent == keeper
