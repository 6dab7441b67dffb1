"""The page of a proposed memory: no agent uses it yet, one primary button, successors by their text."""

import pytest

from personas.models import Event, Memory, Soul
from personas.roles import Role
from prompts.models import AgentPrompt, BuildCause
from tests.factories import join, make_agent, make_channel, make_memory, make_soul, make_user, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stale(workspace):
    """An agent whose soul was changed without a build, so that any build would change its prompt."""
    soul = make_soul(workspace, text="Be calm.")
    agent = make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    Soul.unscoped.filter(pk=soul.pk).update(text="Be quick.")
    return agent


def get_version_numbers(agent) -> list[int]:
    return list(AgentPrompt.unscoped.filter(agent=agent).values_list("last_number", flat=True))


@pytest.mark.parametrize("shared", [True, False])
def test_rejecting_it_builds_nothing_and_needs_no_review(as_alice, workspace, stale, shared):
    memory = make_memory(workspace, "The reef moved.", status="proposed", agent=None if shared else stale)
    page = as_alice.get(f"/w/{workspace.slug}/memories/{memory.pk}/").content.decode()
    path = f"/w/{workspace.slug}/memories/decide/"
    assert f'action="{path}"' in page
    asked = as_alice.post(path, {"reject": memory.pk}, headers={"Dramatis-Review": "ask"})
    assert asked.status_code == 204
    assert "Dramatis-Review" not in as_alice.post(path, {"reject": memory.pk}).headers
    assert Memory.unscoped.get(pk=memory.pk).status == "revoked"
    assert get_version_numbers(stale) == [1]
    assert not BuildCause.unscoped.exists()


def test_proposing_it_builds_nothing(workspace, stale):
    make_memory(workspace, "The reef moved.", status="proposed")
    assert get_version_numbers(stale) == [1]


@pytest.mark.planted
def test_a_memory_that_is_thought_to_be_in_prompts_is_found(as_alice, workspace, stale, monkeypatch):
    monkeypatch.setattr(Memory, "can_change_prompts", lambda self, before, after: True)
    with pytest.raises(AssertionError):
        test_rejecting_it_builds_nothing_and_needs_no_review(as_alice, workspace, stale, shared=True)


def test_a_reviewer_rejects_it_on_its_page_and_an_event_says_so(workspace):
    memory = make_memory(workspace, "The reef moved.", status="proposed")
    ada = make_user("Ada")
    join(workspace, ada, Role.REVIEWER)
    reviewer = signed_in(ada)
    page = reviewer.get(f"/w/{workspace.slug}/memories/{memory.pk}/").content.decode()
    assert f'name="reject" value="{memory.pk}"' in page
    back = f"/w/{workspace.slug}/memories/{memory.pk}/"
    answer = reviewer.post(f"/w/{workspace.slug}/memories/decide/", {"reject": memory.pk, "back": back})
    assert answer["Location"] == back
    assert Event.unscoped.filter(type="memory.rejected").exists()


def test_no_agent_uses_it_yet(as_alice, workspace):
    make_agent(workspace, "pilot")
    memory = make_memory(workspace, "The reef moved.", status="proposed")
    page = as_alice.get(f"/w/{workspace.slug}/memories/{memory.pk}/").content.decode()
    assert "No agent yet. If this memory is approved, all agents can use it." in page
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
