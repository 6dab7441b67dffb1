"""A skill is judged by the rules of the harness of each agent that reads it."""

# ruff: noqa: F811  # fixtures are imported and requested by name

import pytest
from django.utils import timezone

from personas.records.services import edit_record
from prompts.publishing.inputs.collect import collect_inputs
from prompts.publishing.inputs.skill_files import list_skill_files
from skills.agent_context.effective import get_effective_context
from skills.agent_context.services import choose_context
from skills.files.services import assign_skill_file
from skills.models import AssignedTo
from tests.api_client import admin, bot, full_budgets, key_for  # noqa: F401  # fixtures
from tests.factories import BY, make_agent, make_channel, make_source, refreshed
from tests.skills.files.file_samples import approve_file_at, file_at, write

pytestmark = pytest.mark.django_db
PATH = ".agents/skills/folder/SKILL.md"
# Valid for pi and moltis; opal requires that the name equals the folder's name.
TEXT = "---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"


@pytest.fixture
def source(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / PATH, TEXT)
    source = make_source(workspace, tmp_path, harnesses=["opal", "pi"])
    refreshed(source)
    return source


def make_reader(source, slug, rules, layout="dramatis"):
    agent = make_agent(source.workspace, slug, layout=layout)
    choose_context(agent, source, rules, working_directory="", expected=agent.revision, by=BY)
    return agent


def list_used(agent):
    return [skill.name for skill in get_effective_context(agent).skills if skill.is_used]


def test_each_agent_judges_by_the_rules_that_it_reads_with(source):
    opal, pi = make_reader(source, "olga", "opal"), make_reader(source, "pia", "pi")
    approve_file_at(source, PATH)
    assert (list_used(opal), list_used(pi)) == ([], ["tea"])
    offered = [[file.name for file in list_skill_files(get_effective_context(one))] for one in (opal, pi)]
    assert offered == [[], ["tea"]]


def test_the_layout_of_a_harness_judges_too(source):
    agent = make_reader(source, "pia", "pi", layout="opal")
    approve_file_at(source, PATH)
    assert list_used(agent) == []
    (skill,) = get_effective_context(agent).skills
    assert skill.dropped == ('The name must equal its folder\'s name, "folder".',)


def test_a_build_reports_the_skills_that_the_agents_rules_drop(source, workspace):
    agent = make_reader(source, "olga", "opal")
    edit_record(agent, {"channels": [make_channel(workspace, "desk")]}, expected=agent.revision, by=BY)
    approve_file_at(source, PATH)
    [collected] = collect_inputs(workspace, [agent], at=timezone.now())
    assert collected.inputs.skills == ()
    assert any("“tea” is not offered: The name must equal" in problem for problem in collected.problems)


def test_an_agent_without_a_source_judges_by_its_layout(workspace, source):
    moltis, nova = (
        make_agent(workspace, "milo", layout="moltis"),
        make_agent(workspace, "nora", layout="nova"),
    )
    approve_file_at(source, PATH)
    assign_skill_file(file_at(source, PATH), AssignedTo.ALL, [], by=BY)
    assert (list_used(moltis), list_used(nova)) == (["tea"], [])


@pytest.mark.slow
def test_the_inbox_the_library_and_the_file_page_say_for_whom_a_skill_is_valid(source, workspace, as_alice):
    make_reader(source, "olga", "opal")
    make_reader(source, "pia", "pi")
    not_valid = "Not valid for Olga (opal rules): The name must equal its folder"
    page = as_alice.get(f"/w/{workspace.slug}/inbox/").content.decode()
    assert "Valid for Pia." in page
    assert not_valid in page
    page = as_alice.get(f"/w/{workspace.slug}/files/{file_at(source, PATH).pk}/").content.decode()
    assert "Valid for agent" in page
    assert "With the opal rules:" in page
    approve_file_at(source, PATH)
    page = as_alice.get(f"/w/{workspace.slug}/skills/").content.decode()
    assert "Valid for Pia." in page
    assert "Excluded by the rules of Olga." in page


def test_the_api_says_for_whom_a_skill_is_valid(source, workspace, admin, key_for):
    make_reader(source, "olga", "opal")
    make_reader(source, "pia", "pi")
    body = admin.get(f"discovered-skills/{file_at(source, PATH).pk}").json()
    assert body["valid_for"] == ["pia"]
    assert [(row["agent"], row["rules"]) for row in body["not_valid_for"]] == [("olga", ["opal"])]
    assert "must equal its folder" in body["not_valid_for"][0]["reasons"][0]


@pytest.mark.parametrize("layout", ["opal", "pi", "moltis", "nova", "ptc", "dramatis"])
def test_a_skill_with_an_invalid_name_is_used_by_no_agent(source, tmp_path, layout):
    agent = make_reader(source, "pia", "pi", layout=layout)
    write(tmp_path / PATH, TEXT.replace("name: tea", "name: Best Tea"))
    refreshed(source)
    file = file_at(source, PATH)
    assert file.status == "invalid"
    assert list_used(agent) == []
