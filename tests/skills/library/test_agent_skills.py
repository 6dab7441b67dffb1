"""The skills tab of an agent lists the same skills as its prompts, each with its kind of assignment."""

from copy import deepcopy

import pytest
from django.test.utils import override_settings

from skills.agent_context.effective import get_effective_context
from skills.agent_context.services import choose_context
from skills.files.services import assign_skill_file
from skills.library.selectors import get_agent_skills
from skills.models import AssignedTo
from skills.sources.readers import get_context_reader, get_readers_by_agent
from tests.factories import BY, make_agent, make_skill, make_source, refreshed
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)
from tests.skills.files.file_samples import approve_file_at, file_at, write, write_skill

pytestmark = pytest.mark.django_db


def make_skill_source(workspace, root):
    """Create a source with four skills and a soul, and an agent with skills of every kind of assignment."""
    paths = [write_skill(root, name) for name in ("found", "twice", "assigned", "everyones")]
    write(root / "SOUL.md", "Be brave.\n")
    source = make_source(workspace, root, harnesses=["plain", "openclaw"])
    refreshed(source)
    for path in paths:
        approve_file_at(source, path)
    agent = make_agent(workspace, "pilot")
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    make_skill(workspace, "attached", agents=[agent])
    make_skill(workspace, "twice", for_all_agents=True)
    make_skill(workspace, "foreign", agents=[make_agent(workspace, "mate")])
    assign_skill_file(
        file_at(source, ".agents/skills/assigned/SKILL.md"), AssignedTo.SELECTED, [agent], by=BY
    )
    assign_skill_file(file_at(source, ".agents/skills/everyones/SKILL.md"), AssignedTo.ALL, [], by=BY)
    agent.refresh_from_db()
    return source, agent


@pytest.fixture(scope="module", autouse=True)
def prepared(cast, django_db_blocker, tmp_path_factory):
    root = tmp_path_factory.mktemp("skills")
    with override_settings(DRAMATIS_SOURCE_ROOTS=[root]), django_db_blocker.unblock():
        return make_skill_source(cast.workspace, root)


@pytest.fixture
def source(prepared, db):
    return deepcopy(prepared[0])


@pytest.fixture
def reader(prepared, db):
    return deepcopy(prepared[1])


def summarize_skills(skills):
    return [(one.name, one.hidden_by, one.dropped) for one in skills]


def test_each_skill_has_its_kind_of_assignment(reader):
    _, skills = get_agent_skills(reader)
    assert {(one.skill.name, one.assignment) for one in skills} == {
        ("attached", "attached"),
        ("twice", "for_all"),
        ("twice", "found"),
        ("found", "found"),
        ("assigned", "assigned"),
        ("everyones", "assigned_to_all"),
    }


def test_the_tab_and_the_prompts_agree(reader):
    assert summarize_skills(one.skill for one in get_agent_skills(reader)[1]) == summarize_skills(
        get_effective_context(reader).skills
    )


def test_a_hidden_skill_is_shown_with_the_winner(reader, as_bob):
    page = as_bob.get(f"/w/harbour/agents/{reader.slug}/skills/").content.decode()
    assert "has the same name and is used instead" in page
    for label in (
        "Attached to this agent",
        "For all agents",
        "Found by this agent&#x27;s discovery rules",
        "Assigned to this agent",
    ):
        assert label in page
    assert "foreign" not in page


@pytest.mark.slow
def test_the_tabs_of_an_agent_with_files_need_few_queries(reader, as_bob, django_assert_max_num_queries):
    for tab in ("", "skills/", "context/", "channels/"):
        path = f"/w/harbour/agents/{reader.slug}/{tab}"
        as_bob.get(path)
        with django_assert_max_num_queries(15, info=tab):
            as_bob.get(path)


def test_an_agent_without_skills_shows_how_to_get_some(elsewhere, as_mallory):
    agent = make_agent(elsewhere, "pilot")
    page = as_mallory.get(f"/w/elsewhere/agents/{agent.slug}/skills/").content.decode()
    assert "No skills" in page
    assert "This agent does not read any source." in page


def test_the_reader_of_one_agent_equals_its_reader_among_all(workspace, reader):
    child = make_agent(workspace, "child", parent=reader, working_directory="docs")
    grandchild = make_agent(workspace, "grandchild", parent=child)
    for one in (reader, child, grandchild, make_agent(workspace, "alone")):
        assert get_context_reader(one) == get_readers_by_agent(workspace).get(one.pk)
    inherited = get_context_reader(grandchild)
    assert inherited is not None
    assert (inherited.chosen_by, inherited.working_directory) == (reader, "docs")


@pytest.mark.slow
def test_a_discovered_soul_is_shown_on_the_agents_own_page(workspace, source, as_bob):
    agent = make_agent(workspace, "helm")
    path = f"/w/harbour/agents/{agent.slug}/"
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    assert "from a file" not in as_bob.get(path).content.decode()
    agent.refresh_from_db()
    choose_context(agent, source, "openclaw", working_directory="", expected=agent.revision, by=BY)
    page = as_bob.get(path).content.decode()
    assert "from a file" in page
    assert f"/files/{file_at(source, 'SOUL.md').pk}/" in page
    assert "built-in default" not in page
