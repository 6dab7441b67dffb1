"""Context page of an agent: choice and inheritance of its source, effective and withheld files, polling."""

import shutil
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

from personas.models import Agent
from personas.records.services import archive_record, edit_record
from personas.roles import Role
from skills.agent_context.services import choose_context
from skills.files.services import assign_skill_file
from skills.models import AgentContext, AssignedTo, RefreshRun, Source
from tests.factories import BY, join, make_agent, make_skill, make_source, make_user, refreshed, signed_in
from tests.module_fixtures import put_back
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
from tests.skills.files.file_samples import GOOD, POISON, approve_file_at, file_at, write, write_skill
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db


class ContextSource(NamedTuple):
    """A source, an agent that reads it from the folder docs, and an agent that reads nothing."""

    source: Source
    reader: Agent
    agent: Agent
    files: Path
    pristine: Path


@pytest.fixture(scope="module", autouse=True)
def prepared(cast, django_db_blocker, tmp_path_factory):
    top = tmp_path_factory.mktemp("contexts")
    root = top / "files"
    with override_settings(DRAMATIS_SOURCE_ROOTS=[top]):
        write(root / "AGENTS.md", GOOD)
        write(root / "docs/AGENTS.md", "Write <b>plainly</b>.\n")
        with django_db_blocker.unblock():
            source = make_source(cast.workspace, root)
            refreshed(source)
            reader, agent = make_agent(cast.workspace, "pilot"), make_agent(cast.workspace, "helm")
            choose_context(reader, source, "plain", working_directory="docs", expected=reader.revision, by=BY)
            reader.refresh_from_db()
        shutil.copytree(root, top / "pristine")
        yield ContextSource(source, reader, agent, root, top / "pristine")


@pytest.fixture
def root(prepared):
    yield prepared.files
    put_back(prepared.files, prepared.pristine)


@pytest.fixture
def source(prepared, db):
    return deepcopy(prepared.source)


@pytest.fixture
def reader(prepared, db):
    return deepcopy(prepared.reader)


@pytest.fixture
def agent(prepared, db):
    return deepcopy(prepared.agent)


def context_url(agent, page=""):
    return f"/w/{agent.workspace.slug}/agents/{agent.slug}/context/{page}"


def form_data(agent, chosen, **more):
    values = {"source_1": chosen.pk if chosen else "", "harness": "plain", "working_directory": ""}
    switches = {"has_context_files": "on", "has_skills": "on"}
    return values | switches | {"revision": agent.revision} | more


def get_reader(browser, agent):
    return browser.get(context_url(agent)).context["effective_context"].reader


# --- content -------------------------------------------------------------------------------------------


def test_active_files_are_shown_in_the_order_they_are_read(reader, as_bob):
    response = as_bob.get(context_url(reader))
    page = response.content.decode()
    assert [one.file.path for one in response.context["effective_context"].files] == [
        "AGENTS.md",
        "docs/AGENTS.md",
    ]
    assert "Never promise a date." in page
    assert "Write &lt;b&gt;plainly&lt;/b&gt;." in page
    assert f"{len(GOOD) + 22} characters, in the order they are read" in page


def test_an_agent_without_a_source_says_why(agent, source, as_bob):
    assert "No source selected yet." in as_bob.get(context_url(agent)).content.decode()
    choose_context(agent, None, "plain", working_directory="", expected=agent.revision, by=BY)
    assert "This agent is set to read no files." in as_bob.get(context_url(agent)).content.decode()


@pytest.mark.slow
def test_a_working_directory_outside_the_source_is_reported(reader, source, as_bob, root):
    choose_context(
        reader, source, "plain", working_directory="/home/bot/docs", expected=reader.revision, by=BY
    )
    text = as_bob.get(context_url(reader)).content.decode()
    assert "/home/bot/docs is not below" in text
    mark = as_bob.get(context_url(reader)).context["mark"]
    reader.refresh_from_db()
    choose_context(reader, source, "plain", working_directory=str(root), expected=reader.revision, by=BY)
    answer = as_bob.get(context_url(reader, "live/"), {"seen": mark})
    assert (answer.status_code, "/home/bot/docs" in answer.content.decode()) == (200, False)


def test_a_skill_folder_outside_every_source_is_reported_on_the_page(reader, source, as_bob):
    data = form_data(reader, source, extra_skill_folders="/skills\n/tools")
    assert as_bob.post(context_url(reader, "choose/"), data).status_code == 302
    page = as_bob.get(context_url(reader)).content.decode()
    assert "Skill folder not found" in page
    assert "The additional skill folders /skills, /tools are not in any" in page
    reader.refresh_from_db()
    as_bob.post(context_url(reader, "choose/"), form_data(reader, source, extra_skill_folders="tools"))
    assert "Skill folder not found" not in as_bob.get(context_url(reader)).content.decode()


def test_the_form_preselects_rules_that_the_source_has(agent, source, workspace, root, as_bob):
    def preselected():
        return as_bob.get(context_url(agent)).context["form"]["harness"].value()

    assert preselected() == "plain"
    Source.unscoped.filter(pk=source.pk).update(harnesses=["opal"])
    assert preselected() == "opal"
    make_source(workspace, root, "Narrow", harnesses=["pi"])
    make_source(workspace, root, "Other", harnesses=["pi", "opal"])
    make_source(workspace, root, "Third", harnesses=["pi"])
    assert preselected() == "pi"


def test_an_archived_source_is_named_as_the_reason(reader, source, as_bob):
    Source.unscoped.filter(pk=source.pk).update(archived_at=timezone.now())
    assert "is archived." in as_bob.get(context_url(reader)).content.decode()


@pytest.mark.slow
def test_a_withheld_file_is_shown_here_and_on_the_agents_own_page(reader, source, root, as_bob):
    assert "withheld" not in as_bob.get(context_url(reader)[: -len("context/")]).content.decode()
    approve_file_at(source)
    write(root / "AGENTS.md", POISON)
    refreshed(source)
    response = as_bob.get(context_url(reader))
    page = response.content.decode()
    assert [file.path for file in response.context["unusable_files"]] == ["AGENTS.md"]
    assert "1 file is withheld" in page
    assert "Revision 1 is live, but no prompt contains it." in page
    assert response.context["effective_context"].files[0].text == GOOD
    own = as_bob.get(context_url(reader)[: -len("context/")]).content.decode()
    assert "1 file is withheld from this agent" in own
    assert "Invisible character that no script or emoji needs" in own


def test_a_quarantined_file_of_another_folder_does_not_affect_the_agent(reader, source, root, as_bob):
    write(root / "elsewhere/AGENTS.md", POISON)
    refreshed(source)
    assert "withheld" not in as_bob.get(context_url(reader)[: -len("context/")]).content.decode()


@pytest.mark.slow
def test_an_assigned_skill_is_withheld_when_it_is_quarantined(agent, source, root, as_bob):
    path = write_skill(root, "tea")
    refreshed(source)
    assign_skill_file(file_at(source, path), AssignedTo.SELECTED, [agent], by=BY)
    write(root / path, (root / path).read_text() + "\u202e\n")
    refreshed(source)
    assert (
        "1 file is withheld from this agent"
        in as_bob.get(context_url(agent)[: -len("context/")]).content.decode()
    )


@pytest.mark.slow
def test_pending_and_missing_files_are_shown(workspace, agent, root, as_bob):
    source = make_source(workspace, root, "By hand", approval="manual")
    skill = write_skill(root, "tea")
    refreshed(source)
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    response = as_bob.get(context_url(agent))
    assert {file.path for file in response.context["pending_files"]} == {"AGENTS.md", skill}
    assert "Needs review" in response.content.decode()
    approve_file_at(source)
    (root / "AGENTS.md").unlink()
    refreshed(source)
    response = as_bob.get(context_url(agent))
    assert [file.path for file in response.context["missing_files"]] == ["AGENTS.md"]
    assert [one.text for one in response.context["effective_context"].files] == [GOOD]


def test_an_assigned_untrusted_skill_is_pending(agent, source, root, as_bob):
    path = write_skill(root, "tea")
    refreshed(source)
    assign_skill_file(file_at(source, path), AssignedTo.ALL, [], by=BY)
    assert [file.path for file in as_bob.get(context_url(agent)).context["pending_files"]] == [path]


@pytest.mark.slow
def test_hidden_and_dropped_skills_are_shown_with_reasons(reader, source, root, workspace, as_bob):
    twin = write_skill(root, "tea", folder="docs/")
    odd = "docs/.agents/skills/odd/SKILL.md"
    write(root / odd, "---\nname: not-odd\ndescription: Is odd.\n---\n\nBe odd.\n")
    make_skill(workspace, "tea", for_all_agents=True)
    refreshed(source)
    approve_file_at(source, twin)
    approve_file_at(source, odd)
    page = as_bob.get(context_url(reader)).content.decode()
    assert "has the same name and is used instead" in page
    assert "Excluded" in page
    assert "The name must equal its folder" in page


def test_the_pages_of_an_agent_link_to_each_other(reader, as_bob):
    for page, current in (
        (context_url(reader), "Context"),
        (context_url(reader)[: -len("context/")], "Persona"),
    ):
        text = as_bob.get(page).content.decode()
        assert f'aria-current="page">{current}</a>' in text
        assert context_url(reader) in text


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_files(reader, source, root, as_bob):
    as_bob.get(context_url(reader))

    def count_queries(page=""):
        with CaptureQueriesContext(connection) as captured:
            as_bob.get(context_url(reader, page))
        return len(captured)

    write_skill(root, "first", folder="docs/")
    refreshed(source)
    before = count_queries()
    for number in range(12):
        write(root / f"docs/{number}/AGENTS.md", GOOD)
        write_skill(root, f"skill-{number}", folder="docs/")
    refreshed(source)
    assert count_queries() == before
    mark = as_bob.get(context_url(reader)).context["mark"]
    assert count_queries(f"live/?seen={mark}") <= 3 + 8


# --- live ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_live_part_is_returned_only_after_a_change(reader, source, root, workspace, as_bob):
    mark = as_bob.get(context_url(reader)).context["mark"]

    def poll():
        nonlocal mark
        response = as_bob.get(context_url(reader, "live/"), {"seen": mark})
        if response.status_code == 204:
            return ""
        mark = response.context["mark"]
        return response.content.decode()

    refreshed(source)
    assert not poll()
    write(root / "docs/AGENTS.md", "Write with care.\n")
    refreshed(source)
    page = poll()
    assert "Write with care." in page
    assert 'hx-swap-oob="innerHTML">Context updated at' in page
    assert not poll()
    make_skill(workspace, "tea", for_all_agents=True)
    assert poll()
    path = write_skill(root, "pot", folder="elsewhere/")
    refreshed(source)
    assert poll()
    assign_skill_file(file_at(source, path), AssignedTo.SELECTED, [reader], by=BY)
    assert poll()
    choose_context(reader, source, "pi", working_directory="docs", expected=reader.revision, by=BY)
    assert poll()
    assert not poll()


# --- choosing ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_editor_chooses_source_rules_and_folder(agent, source, as_bob):
    response = as_bob.post(
        context_url(agent, "choose/"), form_data(agent, source, harness="pi", working_directory="docs")
    )
    assert response.status_code == 302
    chosen_reader = get_reader(as_bob, agent)
    assert (chosen_reader.source, chosen_reader.harness.name, chosen_reader.working_directory) == (
        source,
        "pi",
        "docs",
    )


@pytest.mark.slow
def test_an_editor_adds_orders_and_removes_sources(agent, source, workspace, root, as_bob):
    home = make_source(workspace, root, "Home", location="/home/user")
    rows = {"source_2": home.pk, "scope_2": "home", "position_1": 2, "position_2": 1, "scope_1": "project"}
    rows |= {"location_1": "/home/user/app", "file_names": "AGENTS.md\n\n TEAM.md ", "has_skills": ""}
    response = as_bob.post(context_url(agent, "choose/"), form_data(agent, source, **rows))
    assert response.status_code == 302
    chosen = get_reader(as_bob, agent)
    assert [(use.source, use.scope, use.bot_location) for use in chosen.uses] == [
        (home, "home", "/home/user"),
        (source, "project", "/home/user/app"),
    ]
    assert (chosen.row.file_names, chosen.row.has_skills) == (["AGENTS.md", "TEAM.md"], False)
    page = as_bob.get(context_url(agent)).content.decode()
    assert f'<option value="{home.pk}" selected' in page
    assert "/home/user/app" in page
    assert page.count("Turned off") == 1
    agent.refresh_from_db()
    assert as_bob.post(context_url(agent, "choose/"), form_data(agent, source)).status_code == 302
    assert [use.source for use in get_reader(as_bob, agent).uses] == [source]


@pytest.mark.slow
def test_saving_the_form_unchanged_keeps_the_choice(reader, source, as_bob):
    before = get_reader(as_bob, reader)
    form = as_bob.get(context_url(reader)).context["form"]
    data = {name: form[name].value() for name in form.fields if form[name].value() not in (None, False)}
    assert as_bob.post(context_url(reader, "choose/"), data).status_code == 302
    after = get_reader(as_bob, reader)
    assert (after.match_key, after.source) == (before.match_key, before.source)


def test_new_file_names_request_a_refresh(agent, source, as_bob):
    runs = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source, status="queued")
    assert not runs.exists()
    as_bob.post(context_url(agent, "choose/"), form_data(agent, source, file_names="TEAM.md"))
    assert runs.exists()


def test_an_agent_can_be_set_to_read_nothing(reader, as_bob):
    assert as_bob.post(context_url(reader, "choose/"), form_data(reader, None)).status_code == 302
    assert get_reader(as_bob, reader) is None


@pytest.mark.slow
def test_a_sub_agent_inherits_until_it_chooses_and_again_after_dropping_its_choice(
    reader, source, workspace, as_bob
):
    child = make_agent(workspace, "child", parent=reader)
    page = as_bob.get(context_url(child)).content.decode()
    assert get_reader(as_bob, child).is_inherited
    assert page.count("Inherited from") == 2
    as_bob.post(context_url(child, "choose/"), form_data(child, None))
    assert get_reader(as_bob, child) is None
    assert "Inherit from Pilot" in as_bob.get(context_url(child)).content.decode()
    assert as_bob.post(context_url(child, "inherit/")).status_code == 302
    assert get_reader(as_bob, child).source == source


BAD_CHOICES = {
    "no such source": ({"source_1": "999999"}, "source_1"),
    "no number": ({"source_1": "x"}, "source_1"),
    "a source twice": ({"source_2": "again"}, "source_1"),
    "a relative location": ({"location_1": "srv"}, "__all__"),
    "a path as file name": ({"file_names": "docs/AGENTS.md"}, "file_names"),
    "a relative folder of skills": ({"pulled_skills_folder": "skills"}, "pulled_skills_folder"),
    "no rules": ({"harness": ""}, "harness"),
    "unknown rules": ({"harness": "vim"}, "harness"),
    "over-long folder": ({"working_directory": "x" * 1_001}, "working_directory"),
    "odd folder": ({"working_directory": "docs\x07"}, "working_directory"),
    "no revision": ({"revision": ""}, "revision"),
}


@pytest.mark.slow
@SOME_OR_ALL
def test_an_invalid_choice_shows_the_field_error_and_changes_nothing(reader, source, as_bob, chosen):
    for case, (values, field) in chosen(BAD_CHOICES.items()):
        filled = {name: source.pk if value == "again" else value for name, value in values.items()}
        response = as_bob.post(context_url(reader, "choose/"), form_data(reader, source, **filled))
        assert response.status_code == 422, case
        assert next(iter(response.context["form"].errors)) == field, case
    assert get_reader(as_bob, reader).working_directory == "docs"


def test_a_harness_that_the_source_does_not_use_is_rejected(agent, workspace, root, as_bob):
    narrow = make_source(workspace, root, "Narrow", harnesses=["plain"])
    response = as_bob.post(context_url(agent, "choose/"), form_data(agent, narrow, harness="moltis"))
    assert response.status_code == 422
    assert "does not use these discovery rules" in str(response.context["form"].errors["harness"])


def test_every_invalid_field_is_reported_at_once(agent, workspace, root, as_bob):
    narrow = make_source(workspace, root, "Narrow", harnesses=["plain"])
    values = {"file_names": "docs/A.md", "extra_skill_folders": "../up", "pulled_skills_folder": "x"}
    data = form_data(agent, narrow, harness="moltis", **values)
    response = as_bob.post(context_url(agent, "choose/"), data)
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {"harness", *values}


def test_a_foreign_source_is_not_among_the_choices(agent, elsewhere, root, as_bob):
    theirs = make_source(elsewhere, root, "Theirs")
    response = as_bob.post(context_url(agent, "choose/"), form_data(agent, theirs))
    assert response.status_code == 422
    assert "Theirs" not in response.content.decode()
    assert not AgentContext.unscoped.filter(agent=agent).exists()


@pytest.mark.slow
def test_an_archived_source_is_offered_only_to_agents_that_have_it(reader, source, workspace, as_bob):
    Source.unscoped.filter(pk=source.pk).update(archived_at=timezone.now())
    other = make_agent(workspace, "other")
    assert f'<option value="{source.pk}"' not in as_bob.get(context_url(other)).content.decode()
    assert f'<option value="{source.pk}" selected' in as_bob.get(context_url(reader)).content.decode()
    assert as_bob.post(context_url(other, "choose/"), form_data(other, source)).status_code == 422


@pytest.mark.slow
def test_the_later_of_two_editors_sees_a_conflict_and_can_save_again(reader, source, as_bob):
    late = form_data(reader, source, harness="pi")
    edit_record(reader, {"description": "Meanwhile."}, expected=reader.revision, by=BY)
    response = as_bob.post(context_url(reader, "choose/"), late)
    assert response.status_code == 409
    assert "This agent changed after you opened the page." in response.content.decode()
    assert get_reader(as_bob, reader).harness.name == "plain"
    again = late | {"revision": response.context["form"]["revision"].value()}
    assert as_bob.post(context_url(reader, "choose/"), again).status_code == 302
    assert get_reader(as_bob, reader).harness.name == "pi"


# --- permissions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.REVIEWER, pytest.param(Role.VIEWER, marks=pytest.mark.hard)])
def test_viewers_and_reviewers_see_the_context_and_cannot_choose(reader, source, workspace, role):
    person = make_user("Percy")
    join(workspace, person, role)
    browser = signed_in(person)
    page = browser.get(context_url(reader)).content.decode()
    assert "Live files" in page
    assert context_url(reader, "choose/") not in page
    assert browser.post(context_url(reader, "choose/"), form_data(reader, source)).status_code == 403
    assert browser.post(context_url(reader, "inherit/")).status_code == 403


def test_an_archived_agent_is_read_only(reader, as_bob):
    archive_record(reader, by=BY)
    page = as_bob.get(context_url(reader)).content.decode()
    assert context_url(reader, "choose/") not in page
    assert context_url(reader, "inherit/") not in page


def test_an_outsider_gets_404_for_the_context(reader, as_mallory, elsewhere):
    for page in ("", "live/"):
        assert as_mallory.get(context_url(reader, page)).status_code == 404
        assert as_mallory.get(f"/w/{elsewhere.slug}/agents/{reader.slug}/context/{page}").status_code == 404
    for page in ("choose/", "inherit/"):
        assert as_mallory.post(context_url(reader, page)).status_code == 404
        assert as_mallory.get(context_url(reader, page)).status_code == 404


def test_an_unknown_agent_has_no_context(workspace, as_bob):
    assert as_bob.get(f"/w/{workspace.slug}/agents/nobody/context/").status_code == 404
