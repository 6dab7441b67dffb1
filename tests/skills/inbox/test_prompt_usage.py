"""The inbox, the file page and the API say which revision prompts contain, from the prompts themselves."""

# ruff: noqa: F811  # fixtures are imported and requested by name

import os

import pytest

from personas.records.services import edit_record
from prompts.publishing.builds.services import rebuild_agents
from skills.agent_context.services import choose_context
from skills.files.prompt_usage import get_prompt_usage
from skills.files.services import set_trust_requirement
from tests.api_client import admin, bot, full_budgets, key_for  # noqa: F401  # fixtures
from tests.factories import BY, make_agent, make_channel, make_source, refreshed
from tests.skills.files.file_samples import GOOD, POISON, file_at, write

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SKILL = ".agents/skills/folder/SKILL.md"
HELD, NOT_HELD = "This revision is live in prompts.", "This revision is live, but no prompt contains it."


@pytest.fixture
def root(tmp_path, settings, workspace):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    set_trust_requirement(workspace, False, by=BY)
    workspace.refresh_from_db()
    write(tmp_path / "AGENTS.md", GOOD)
    return tmp_path


@pytest.fixture
def source(workspace, root):
    source = make_source(workspace, root, approval="automatic")
    refreshed(source)
    return source


def make_reader(source, rules="pi", layout="pi"):
    agent = make_agent(source.workspace, "pilot", layout=layout)
    channel = make_channel(source.workspace, "desk")
    agent = edit_record(agent, {"channels": [channel]}, expected=agent.revision, by=BY)
    choose_context(agent, source, rules, working_directory="", expected=agent.revision, by=BY)
    build(agent)
    return agent


def build(agent):
    rebuild_agents(agent.workspace_id, [agent.pk])


def get_usage(client, source, path="AGENTS.md"):
    """Return the sentence in the inbox, after a check that the file page has the same one."""
    workspace = source.workspace
    rows = client.get(f"/w/{workspace.slug}/inbox/").context["rows"]
    (sentence,) = [row.usage for row in rows if row.file.path == path]
    page = client.get(f"/w/{workspace.slug}/files/{file_at(source, path).pk}/")
    assert page.context["usage"] == sentence
    return sentence


def test_a_file_that_no_agents_rules_match_is_in_no_prompt(source, as_alice, admin):
    assert get_usage(as_alice, source) == NOT_HELD
    assert admin.get(f"context-files/{file_at(source).pk}").json()["status_text"] == NOT_HELD
    make_reader(source)
    assert get_usage(as_alice, source) == HELD
    (row,) = admin.get("context-files").json()["items"]
    assert row["status_text"] == HELD


def test_a_file_that_another_comes_before_is_in_no_prompt(source, root, as_alice):
    write(root / "CLAUDE.md", "Be brief.\n")
    refreshed(source)
    make_reader(source)
    assert get_usage(as_alice, source) == HELD
    assert get_usage(as_alice, source, "CLAUDE.md") == NOT_HELD


def test_a_skill_that_the_layout_drops_is_in_no_prompt(source, root, as_alice):
    write(root / SKILL, "---\nname: tea\ndescription: Makes tea.\n---\n\nBoil.\n")
    refreshed(source)
    agent = make_reader(source, layout="dramatis")
    assert get_usage(as_alice, source, SKILL) == HELD
    agent.refresh_from_db()
    edit_record(agent, {"layout": "opal"}, expected=agent.revision, by=BY)
    build(agent)
    assert get_usage(as_alice, source, SKILL) == NOT_HELD


@pytest.mark.parametrize("fault", ["poison", "size", "link"])
def test_a_file_that_can_no_longer_be_read_stays_only_where_prompts_hold_it(source, root, as_alice, fault):
    agent = make_reader(source)
    path = root / "AGENTS.md"
    if fault == "poison":
        write(path, POISON)
    elif fault == "size":
        write(path, "x" * 300_000)
    else:
        path.unlink()
        os.symlink("/etc/hostname", path)
    refreshed(source)
    build(agent)
    assert get_usage(as_alice, source) == "Prompts keep using revision 1."
    agent.refresh_from_db()
    choose_context(agent, None, "pi", working_directory="", expected=agent.revision, by=BY)
    build(agent)
    assert get_usage(as_alice, source) == "Revision 1 is live, but no prompt contains it."


def test_a_revision_that_is_not_built_yet_is_not_held(source, root, as_alice):
    agent = make_reader(source)
    write(root / "AGENTS.md", GOOD + "Knock first.\n")
    refreshed(source)
    assert get_usage(as_alice, source) == "Revision 2 is live, but prompts still contain revision 1."
    build(agent)
    assert get_usage(as_alice, source) == HELD


def test_production_counts_as_long_as_it_holds_an_older_revision(source, root, as_alice):
    agent = make_reader(source)
    agent.refresh_from_db()
    edit_record(agent, {"release_policy": "reviewed"}, expected=agent.revision, by=BY)
    write(root / "AGENTS.md", GOOD + "Knock first.\n")
    refreshed(source)
    build(agent)
    file = file_at(source)
    assert get_prompt_usage(source.workspace_id, [file])[file.pk] == {1, 2}


def test_a_poll_renders_the_inbox_again_after_a_build(source, root, workspace, as_alice):
    agent = make_reader(source)
    write(root / "AGENTS.md", GOOD + "Knock first.\n")
    refreshed(source)
    mark = as_alice.get(f"/w/{workspace.slug}/inbox/").context["mark"]
    live = f"/w/{workspace.slug}/inbox/live/"
    assert as_alice.get(live, {"seen": mark}).status_code == 204
    build(agent)
    assert HELD in as_alice.get(live, {"seen": mark}).content.decode()
