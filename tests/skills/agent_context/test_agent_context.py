"""What an agent reads: chosen, inherited, shown as it stands, and loud when something is withheld."""

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
from skills.models import AgentContext, Reach, Source
from tests.factories import BY, join, make_agent, make_skill, make_source, make_user, refreshed, signed_in
from tests.module_fixtures import put_back
from tests.skills.files.file_samples import GOOD, POISON, adopted, file_at, write, write_skill
from tests.skills.seeded_choice import SOME_OR_ALL
from tests.skills.shared_cast import (  # noqa: F401  # fixtures
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

pytestmark = pytest.mark.django_db


class House(NamedTuple):
    """What every test finds: a source, an agent that reads it from its docs, and one that reads nothing."""

    source: Source
    reader: Agent
    agent: Agent
    files: Path
    pristine: Path


@pytest.fixture(scope="module", autouse=True)
def house(cast, django_db_blocker, tmp_path_factory):
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
        yield House(source, reader, agent, root, top / "pristine")


@pytest.fixture
def root(house):
    yield house.files
    put_back(house.files, house.pristine)


@pytest.fixture
def source(house, db):
    return deepcopy(house.source)


@pytest.fixture
def reader(house, db):
    return deepcopy(house.reader)


@pytest.fixture
def agent(house, db):
    return deepcopy(house.agent)


def at(agent, page=""):
    return f"/w/{agent.workspace.slug}/agents/{agent.slug}/context/{page}"


def said(agent, chosen, **more):
    values = {"source": chosen.pk if chosen else "", "harness": "plain", "working_directory": ""}
    return values | {"revision": agent.revision} | more


def outlook(browser, agent):
    return browser.get(at(agent)).context["given"].outlook


# --- what is shown -------------------------------------------------------------------------------------


def test_files_in_force_are_shown_in_the_order_they_are_read(reader, as_bob):
    answer = as_bob.get(at(reader))
    page = answer.content.decode()
    assert [one.file.path for one in answer.context["given"].files] == ["AGENTS.md", "docs/AGENTS.md"]
    assert "Never promise a date." in page
    assert "Write &lt;b&gt;plainly&lt;/b&gt;." in page
    assert f"{len(GOOD) + 22} characters, in the order they are read" in page


def test_an_agent_without_a_source_says_why(agent, source, as_bob):
    assert "Nobody has chosen a source for it yet." in as_bob.get(at(agent)).content.decode()
    choose_context(agent, None, "plain", working_directory="", expected=agent.revision, by=BY)
    assert "It was decided that it reads no files." in as_bob.get(at(agent)).content.decode()


def test_an_archived_source_is_named_as_the_reason(reader, source, as_bob):
    Source.unscoped.filter(pk=source.pk).update(archived_at=timezone.now())
    assert "is archived." in as_bob.get(at(reader)).content.decode()


def test_a_withheld_file_is_loud_here_and_on_the_agents_own_page(reader, source, root, as_bob):
    assert "withheld" not in as_bob.get(at(reader)[: -len("context/")]).content.decode()
    adopted(source)
    write(root / "AGENTS.md", POISON)
    refreshed(source)
    answer = as_bob.get(at(reader))
    page = answer.content.decode()
    assert [file.path for file in answer.context["grave"]] == ["AGENTS.md"]
    assert "Withheld: 1 file" in page
    assert "Revision 1 stays in force, unchanged." in page
    assert answer.context["given"].files[0].text == GOOD
    own = as_bob.get(at(reader)[: -len("context/")]).content.decode()
    assert "1 file of this agent is withheld" in own
    assert "An invisible character stands here" in own


def test_a_file_of_another_folder_is_no_trouble_of_this_agent(reader, source, root, as_bob):
    write(root / "elsewhere/AGENTS.md", POISON)
    refreshed(source)
    assert "withheld" not in as_bob.get(at(reader)[: -len("context/")]).content.decode()


def test_a_skill_that_was_handed_out_is_a_trouble_when_it_turns(agent, source, root, as_bob):
    path = write_skill(root, "tea")
    refreshed(source)
    assign_skill_file(file_at(source, path), Reach.CHOSEN, [agent], by=BY)
    write(root / path, (root / path).read_text() + "\u202e\n")
    refreshed(source)
    assert "1 file of this agent is withheld" in as_bob.get(at(agent)[: -len("context/")]).content.decode()


def test_what_waits_for_someone_is_shown(workspace, agent, root, as_bob):
    source = make_source(workspace, root, "By hand", adoption="by_hand")
    skill = write_skill(root, "tea")
    refreshed(source)
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    answer = as_bob.get(at(agent))
    assert {file.path for file in answer.context["waiting"]} == {"AGENTS.md", skill}
    assert "Waits for someone" in answer.content.decode()
    adopted(source)
    (root / "AGENTS.md").unlink()
    refreshed(source)
    answer = as_bob.get(at(agent))
    assert [file.path for file in answer.context["gone"]] == ["AGENTS.md"]
    assert [one.text for one in answer.context["given"].files] == [GOOD]


def test_a_handed_skill_that_nobody_trusts_waits_too(agent, source, root, as_bob):
    path = write_skill(root, "tea")
    refreshed(source)
    assign_skill_file(file_at(source, path), Reach.ALL, [], by=BY)
    assert [file.path for file in as_bob.get(at(agent)).context["waiting"]] == [path]


def test_hidden_and_dropped_skills_are_shown_with_why(reader, source, root, workspace, as_bob):
    twin = write_skill(root, "tea", folder="docs/")
    odd = "docs/.agents/skills/odd/SKILL.md"
    write(root / odd, "---\nname: Not Odd\ndescription: Is odd.\n---\n\nBe odd.\n")
    make_skill(workspace, "tea", for_all_agents=True)
    refreshed(source)
    adopted(source, twin)
    adopted(source, odd)
    page = as_bob.get(at(reader)).content.decode()
    assert "The same name wins from" in page
    assert "Dropped" in page
    assert "Use lower-case letters, digits and single hyphens" in page


def test_the_pages_of_an_agent_lead_to_each_other(reader, as_bob):
    for page, current in ((at(reader), "Context"), (at(reader)[: -len("context/")], "Persona")):
        text = as_bob.get(page).content.decode()
        assert f'aria-current="page">{current}</a>' in text
        assert at(reader) in text


def test_a_page_asks_no_more_for_many_files(reader, source, root, as_bob):
    as_bob.get(at(reader))

    def questions(page=""):
        with CaptureQueriesContext(connection) as asked:
            as_bob.get(at(reader, page))
        return len(asked)

    before = questions()
    for number in range(12):
        write(root / f"docs/{number}/AGENTS.md", GOOD)
        write_skill(root, f"skill-{number}", folder="docs/")
    refreshed(source)
    assert questions() == before
    mark = as_bob.get(at(reader)).context["mark"]
    assert questions(f"live/?seen={mark}") <= 3 + 8


# --- live ----------------------------------------------------------------------------------------------


def test_the_moving_part_answers_only_when_something_has_changed(reader, source, root, workspace, as_bob):
    mark = as_bob.get(at(reader)).context["mark"]

    def news():
        nonlocal mark
        answer = as_bob.get(at(reader, "live/"), {"seen": mark})
        if answer.status_code == 204:
            return ""
        mark = answer.context["mark"]
        return answer.content.decode()

    refreshed(source)
    assert not news()
    write(root / "docs/AGENTS.md", "Write with care.\n")
    refreshed(source)
    page = news()
    assert "Write with care." in page
    assert 'hx-swap-oob="innerHTML">Context updated at' in page
    assert not news()
    make_skill(workspace, "tea", for_all_agents=True)
    assert news()
    path = write_skill(root, "pot", folder="elsewhere/")
    refreshed(source)
    assert news()
    assign_skill_file(file_at(source, path), Reach.CHOSEN, [reader], by=BY)
    assert news()
    choose_context(reader, source, "pi", working_directory="docs", expected=reader.revision, by=BY)
    assert news()
    assert not news()


# --- choosing ------------------------------------------------------------------------------------------


def test_an_editor_chooses_source_rules_and_folder(agent, source, as_bob):
    answer = as_bob.post(at(agent, "choose/"), said(agent, source, harness="pi", working_directory="docs"))
    assert answer.status_code == 302
    seen = outlook(as_bob, agent)
    assert (seen.source, seen.harness.name, seen.working_directory) == (source, "pi", "docs")


def test_an_agent_can_be_told_to_read_nothing(reader, as_bob):
    assert as_bob.post(at(reader, "choose/"), said(reader, None)).status_code == 302
    assert outlook(as_bob, reader) is None


def test_a_sub_agent_inherits_until_it_chooses_and_again_when_it_drops_that(
    reader, source, workspace, as_bob
):
    child = make_agent(workspace, "child", parent=reader)
    page = as_bob.get(at(child)).content.decode()
    assert outlook(as_bob, child).is_inherited
    assert page.count("Inherited from") == 2
    as_bob.post(at(child, "choose/"), said(child, None))
    assert outlook(as_bob, child) is None
    assert "Inherit from Pilot" in as_bob.get(at(child)).content.decode()
    assert as_bob.post(at(child, "inherit/")).status_code == 302
    assert outlook(as_bob, child).source == source


BAD_CHOICES = {
    "no such source": ({"source": "999999"}, "source"),
    "no number": ({"source": "x"}, "source"),
    "no rules": ({"harness": ""}, "harness"),
    "unknown rules": ({"harness": "vim"}, "harness"),
    "over-long folder": ({"working_directory": "x" * 1_001}, "working_directory"),
    "odd folder": ({"working_directory": "docs\x07"}, "working_directory"),
    "no revision": ({"revision": ""}, "revision"),
}


@SOME_OR_ALL
def test_a_bad_choice_is_told_on_the_field_and_nothing_changes(reader, source, as_bob, chosen):
    for case, (values, field) in chosen(BAD_CHOICES.items()):
        answer = as_bob.post(at(reader, "choose/"), said(reader, source, **values))
        assert answer.status_code == 422, case
        assert list(answer.context["form"].errors) == [field], case
    assert outlook(as_bob, reader).working_directory == "docs"


def test_rules_that_do_not_look_through_the_source_are_refused(agent, workspace, root, as_bob):
    narrow = make_source(workspace, root, "Narrow", harnesses=["plain"])
    answer = as_bob.post(at(agent, "choose/"), said(agent, narrow, harness="moltis"))
    assert answer.status_code == 422
    assert "is not looked through by these rules" in str(answer.context["form"].errors["harness"])


def test_a_foreign_source_is_not_among_the_choices(agent, elsewhere, root, as_bob):
    theirs = make_source(elsewhere, root, "Theirs")
    answer = as_bob.post(at(agent, "choose/"), said(agent, theirs))
    assert answer.status_code == 422
    assert "Theirs" not in answer.content.decode()
    assert not AgentContext.unscoped.filter(agent=agent).exists()


def test_an_archived_source_is_offered_only_to_those_who_have_it(reader, source, workspace, as_bob):
    Source.unscoped.filter(pk=source.pk).update(archived_at=timezone.now())
    other = make_agent(workspace, "other")
    assert f'<option value="{source.pk}"' not in as_bob.get(at(other)).content.decode()
    assert f'<option value="{source.pk}" selected' in as_bob.get(at(reader)).content.decode()
    assert as_bob.post(at(other, "choose/"), said(other, source)).status_code == 422


def test_the_later_of_two_people_is_told_and_can_go_on(reader, source, as_bob):
    late = said(reader, source, harness="pi")
    edit_record(reader, {"description": "Meanwhile."}, expected=reader.revision, by=BY)
    answer = as_bob.post(at(reader, "choose/"), late)
    assert answer.status_code == 409
    assert "Someone changed this agent after you opened the page." in answer.content.decode()
    assert outlook(as_bob, reader).harness.name == "plain"
    again = late | {"revision": answer.context["form"]["revision"].value()}
    assert as_bob.post(at(reader, "choose/"), again).status_code == 302
    assert outlook(as_bob, reader).harness.name == "pi"


# --- who may -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.REVIEWER, pytest.param(Role.VIEWER, marks=pytest.mark.hard)])
def test_readers_see_it_and_choose_nothing(reader, source, workspace, role):
    person = make_user("Percy")
    join(workspace, person, role)
    browser = signed_in(person)
    page = browser.get(at(reader)).content.decode()
    assert "Files in force" in page
    assert at(reader, "choose/") not in page
    assert browser.post(at(reader, "choose/"), said(reader, source)).status_code == 403
    assert browser.post(at(reader, "inherit/")).status_code == 403


def test_an_archived_agent_is_only_looked_at(reader, as_bob):
    archive_record(reader, by=BY)
    page = as_bob.get(at(reader)).content.decode()
    assert at(reader, "choose/") not in page
    assert at(reader, "inherit/") not in page


def test_a_stranger_finds_no_context(reader, as_mallory, elsewhere):
    for page in ("", "live/"):
        assert as_mallory.get(at(reader, page)).status_code == 404
        assert as_mallory.get(f"/w/{elsewhere.slug}/agents/{reader.slug}/context/{page}").status_code == 404
    for page in ("choose/", "inherit/"):
        assert as_mallory.post(at(reader, page)).status_code == 404
        assert as_mallory.get(at(reader, page)).status_code == 404


def test_an_agent_that_is_not_there_has_no_context(workspace, as_bob):
    assert as_bob.get(f"/w/{workspace.slug}/agents/nobody/context/").status_code == 404
