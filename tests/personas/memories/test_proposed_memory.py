"""The page of a proposed memory: no agent uses it yet, one primary button, successors by their text."""

import pytest

from tests.factories import make_agent, make_memory

pytestmark = pytest.mark.django_db


def test_no_agent_uses_it_yet(as_alice, workspace):
    make_agent(workspace, "pilot")
    memory = make_memory(workspace, "The reef moved.", state="proposed")
    page = as_alice.get(f"/w/{workspace.slug}/memories/{memory.pk}/").content.decode()
    assert "No agent yet. If it is approved, all agents can use it." in page
    main = page.partition("<main")[2].partition("</main>")[0]
    assert main.count("btn-primary") == 1


def test_successors_are_memories_of_the_same_agent_with_their_text(as_alice, workspace):
    pilot, cook = make_agent(workspace, "pilot"), make_agent(workspace, "cook")
    memory = make_memory(workspace, "Old.", agent=pilot)
    long = "The harbour is closed from noon until the ferry has left, except on Sundays and in winter storms."
    make_memory(workspace, long, agent=pilot)
    make_memory(workspace, "For everyone.")
    make_memory(workspace, "Of the cook.", agent=cook)
    form = as_alice.get(f"/w/{workspace.slug}/memories/{memory.pk}/").context["successor_form"]
    labels = [label for _value, label in form.fields["successor"].choices]
    assert long in labels
    assert "For everyone." in labels
    assert "Of the cook." not in labels
