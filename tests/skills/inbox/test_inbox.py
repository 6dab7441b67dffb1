"""The context inbox: what waits, gravest first, who may settle it, and how it keeps itself up to date."""

import os
import re
import shutil
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings

from personas.models import User, Workspace
from personas.records.services import archive_record
from personas.roles import Role
from personas.ui.navigation import NAV_COUNTERS
from skills.agent_context.services import choose_context
from skills.files.services import approve_file, assign_skill_file, ignore_file
from skills.inbox.selectors import count_pending_files
from skills.models import ContextFile, Reach, Source
from tests.factories import (
    BY,
    join,
    make_agent,
    make_source,
    make_user,
    make_workspace,
    refreshed,
    signed_in,
)
from tests.module_fixtures import put_back, rows_of_a_module
from tests.skills.files.file_samples import GOOD, POISON, adopted, every_state, file_at, write, write_skill
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db
CABIN = "/w/cabin/inbox/"
STATES = ["quarantined", "invalid", "missing", "changed", "new"]


class House(NamedTuple):
    """What every test finds: made once, as there are many tests and a source in every state takes long."""

    alice: User
    bob: User
    source: Source
    files: Path
    pristine: Path


@pytest.fixture(scope="module")
def house(django_db_setup, django_db_blocker, tmp_path_factory):
    top = tmp_path_factory.mktemp("inbox")
    with rows_of_a_module(django_db_blocker), override_settings(DRAMATIS_SOURCE_ROOTS=[top]):
        with django_db_blocker.unblock():
            alice, bob = make_user("Alice"), make_user("Bob")
            workspace = make_workspace("Harbour", owner=alice)
            join(workspace, bob)
            (top / "files").mkdir()
            source = every_state(workspace, top / "files")
        shutil.copytree(top / "files", top / "pristine")
        yield House(alice, bob, source, top / "files", top / "pristine")


@pytest.fixture
def alice(house, db):
    return User.objects.get(pk=house.alice.pk)


@pytest.fixture
def bob(house, db):
    return User.objects.get(pk=house.bob.pk)


@pytest.fixture
def workspace(house, db):
    return Workspace.objects.get(pk=house.source.workspace_id)


@pytest.fixture
def root(house):
    yield house.files
    put_back(house.files, house.pristine)


@pytest.fixture
def source(house, workspace, root):
    return Source.objects.in_workspace(workspace).get(pk=house.source.pk)


@pytest.fixture
def cabin(alice, bob, tmp_path, settings):
    """A workspace of theirs that has no source yet, and may have one on the test's own folder."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    cabin = make_workspace("Cabin", owner=alice)
    join(cabin, bob)
    return cabin


@pytest.fixture
def inbox(workspace):
    return f"/w/{workspace.slug}/inbox/"


def shown(answer):
    return [row.file.state for row in answer.context["rows"]]


def tick(file):
    return f"{file.pk}:{file.newest.digest if file.is_there else ''}"


# --- what is shown -------------------------------------------------------------------------------------


def test_what_waits_is_shown_gravest_first_with_its_reasons(source, inbox, as_bob):
    answer = as_bob.get(inbox)
    page = answer.content.decode()
    assert shown(answer) == STATES
    assert "makes text read in another order" in page
    assert "Byte 21 (0xFF) is not UTF-8." in page
    assert "no longer at its source" in page
    assert "Revision 1 stays in force, unchanged." in page
    # Only a part that has moved says so.
    assert "Inbox updated" not in page


def test_what_changed_is_a_glance_away_with_what_hides_drawn(source, inbox, as_bob, as_mallory, as_alice):
    page = as_bob.get(inbox).content.decode()
    file = file_at(source, "quarantined/AGENTS.md")
    glance = f"/w/{source.workspace.slug}/files/{file.pk}/peek/"
    assert f'hx-get="{glance}"' in page
    assert f"files/{file.pk}/#diff-title" in page
    # Only those who may waive are led to it.
    assert f"files/{file.pk}/#waive-title" not in page
    assert f"files/{file.pk}/#waive-title" in as_alice.get(inbox).content.decode()
    said = as_bob.get(glance).content.decode()
    assert "From revision 1 to 2" in said
    assert "U+202E" in said
    assert "<html" not in said
    assert as_mallory.get(glance).status_code == 404
    new = file_at(source, "new/AGENTS.md")
    assert f"/files/{new.pk}/peek/" not in page
    assert (
        "Nothing to compare here." in as_bob.get(glance.replace(str(file.pk), str(new.pk))).content.decode()
    )


def test_what_someone_has_dealt_with_is_gone(source, inbox, as_bob):
    adopted(source, "changed/AGENTS.md")
    adopted(source, "missing/AGENTS.md")
    ignore_file(file_at(source, "invalid/AGENTS.md"), by=BY)
    assert shown(as_bob.get(inbox)) == ["quarantined", "new"]


def test_a_source_that_is_out_of_use_asks_for_nothing(source, inbox, as_bob):
    archive_record(source, by=BY)
    assert shown(as_bob.get(inbox)) == []


def test_an_empty_inbox_says_what_to_do_next(cabin, tmp_path, as_alice, as_bob):
    assert "Add a source" in as_alice.get(CABIN).content.decode()
    assert "Once an admin registers a folder" in as_bob.get(CABIN).content.decode()
    refreshed(make_source(cabin, tmp_path))
    assert "Nothing waits" in as_bob.get(CABIN).content.decode()


def test_states_sources_and_words_narrow_it_and_each_is_counted(source, inbox, as_bob, workspace, root):
    other = make_source(workspace, root / "new", "Other files")
    refreshed(other)
    answer = as_bob.get(inbox, {"state": "new"})
    assert [(tab["label"], tab["count"]) for tab in answer.context["tabs"]] == [
        ("All", 6),
        ("Quarantined", 1),
        ("Invalid", 1),
        ("Missing", 1),
        ("Changed", 1),
        ("New", 2),
    ]
    assert [(one["label"], one["count"]) for one in answer.context["sources"]] == [
        ("All sources", 2),
        ("House files", 1),
        ("Other files", 1),
    ]
    assert len(shown(as_bob.get(inbox, {"state": "new", "source": other.slug}))) == 1
    assert shown(as_bob.get(inbox, {"q": "INVALID/"})) == ["invalid"]
    assert shown(as_bob.get(inbox, {"state": "missing", "q": "changed"})) == []
    assert "Nothing matches" in as_bob.get(inbox, {"q": "zzz"}).content.decode()
    assert shown(as_bob.get(inbox, {"source": "elsewhere"})) == []


@SOME_OR_ALL
def test_odd_questions_get_the_whole_inbox(source, inbox, as_bob, chosen):
    odd = [{"state": "odd"}, {"page": "99"}, {"page": "x"}, {"q": "\x00"}, {"seen": "x", "pick": ["1", ":"]}]
    for address, asked in chosen(product((inbox, f"{inbox}live/"), odd)):
        assert shown(as_bob.get(address, asked)) == STATES, (address, asked)


def test_it_counts_the_agents_that_read_a_file(source, inbox, as_bob, workspace, root):
    for number in range(3):
        agent = make_agent(workspace, f"reader-{number}")
        choose_context(agent, source, "plain", working_directory="new", expected=agent.revision, by=BY)
    archive_record(agent, by=BY)
    gone = make_agent(workspace, "late")
    choose_context(gone, source, "plain", working_directory="missing", expected=gone.revision, by=BY)
    readers = {row.file.state: row.readers for row in as_bob.get(inbox).context["rows"]}
    assert readers == {"new": 2, "missing": 1, "quarantined": 0, "invalid": 0, "changed": 0}


def test_it_counts_the_agents_that_were_handed_a_skill(cabin, tmp_path, as_bob):
    agent = make_agent(cabin, "pilot")
    source = make_source(cabin, tmp_path)
    paths = [write_skill(tmp_path, name) for name in ("chosen", "everybodys", "found")]
    refreshed(source)
    assign_skill_file(file_at(source, paths[0]), Reach.CHOSEN, [agent], by=BY)
    assign_skill_file(file_at(source, paths[1]), Reach.ALL, [], by=BY)
    answer = as_bob.get(CABIN)
    assert {row.file.name: row.readers for row in answer.context["rows"]} == {
        "chosen": 1,
        "everybodys": None,
        "found": 0,
    }
    assert "read by all agents" in answer.content.decode()
    assert "No prompt holds it until someone trusts it." in answer.content.decode()


def test_what_the_last_look_refused_is_shown_unless_it_has_a_row(source, inbox, as_bob, root):
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe/AGENTS.md")
    (root / "new/AGENTS.md").unlink()
    os.mkfifo(root / "new/AGENTS.md")
    refreshed(source)
    answer = as_bob.get(inbox)
    [refused] = answer.context["refused"]
    assert [one["path"] for one in refused.shown] == ["pipe/AGENTS.md"]
    assert shown(answer) == ["quarantined", "invalid", "invalid", "missing", "changed"]
    assert as_bob.get(inbox, {"state": "new"}).context["refused"] == []
    (root / "pipe/AGENTS.md").unlink()
    refreshed(source)
    assert as_bob.get(inbox).context["refused"] == []


def test_many_refusals_are_cut_and_counted(cabin, tmp_path, as_bob):
    source = make_source(cabin, tmp_path)
    for number in range(23):
        (tmp_path / str(number)).mkdir()
        os.mkfifo(tmp_path / str(number) / "AGENTS.md")
    refreshed(source)
    [refused] = as_bob.get(CABIN).context["refused"]
    assert (len(refused.shown), refused.more) == (20, 3)


def test_a_hostile_path_is_only_text(cabin, tmp_path, as_bob):
    source = make_source(cabin, tmp_path)
    write(tmp_path / '"><img src=x>' / "AGENTS.md", GOOD)
    refreshed(source)
    page = as_bob.get(CABIN).content.decode()
    assert "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page


# --- what it costs -------------------------------------------------------------------------------------


def questions(browser, address):
    with CaptureQueriesContext(connection) as asked:
        assert browser.get(address).status_code == 200
    return [query["sql"][:90] for query in asked]


def test_it_asks_few_questions_whatever_its_length(source, inbox, as_bob, workspace, root):
    agent = make_agent(workspace, "reader")
    choose_context(agent, source, "plain", working_directory="new", expected=agent.revision, by=BY)
    os.mkfifo(root / "AGENTS.md")
    refreshed(source)
    as_bob.get(inbox)
    short = questions(as_bob, inbox)
    for number in range(6):
        write(root / f"more-{number}/AGENTS.md", GOOD)
        write_skill(root, f"skill-{number}")
        agent = make_agent(workspace)
        choose_context(agent, source, "pi", working_directory=f"more-{number}", expected=1, by=BY)
    refreshed(source)
    long = questions(as_bob, inbox)
    assert len(long) == len(short), long
    # Who asks takes three: session, person, memberships. The rest is the page's own, with its mark.
    assert len(long) <= 3 + 8, long


def test_a_poll_without_news_asks_next_to_nothing(source, inbox, as_bob):
    mark = as_bob.get(inbox).context["mark"]
    with CaptureQueriesContext(connection) as asked:
        assert as_bob.get(f"{inbox}live/", {"seen": mark}).status_code == 204
    assert len(asked) <= 3 + 2


def test_the_sidebar_says_how_many_wait_with_one_question(source, workspace, as_bob):
    with CaptureQueriesContext(connection) as asked:
        assert NAV_COUNTERS["inbox:list"](workspace) == 5
    assert len(asked) == 1
    assert NAV_COUNTERS["inbox:list"] is count_pending_files
    assert re.search(r'dr-nav-count">5<', as_bob.get(f"/w/{workspace.slug}/members/").content.decode())


def test_a_long_inbox_has_pages(cabin, tmp_path, as_bob):
    source = make_source(cabin, tmp_path)
    for number in range(53):
        write(tmp_path / f"{number:02}/AGENTS.md", GOOD)
    refreshed(source)
    assert len(shown(as_bob.get(CABIN))) == 50
    answer = as_bob.get(CABIN, {"page": "2"})
    assert len(shown(answer)) == 3
    assert answer.context["back"].endswith("?page=2")


# --- live ----------------------------------------------------------------------------------------------


def news(browser, inbox, mark):
    return browser.get(f"{inbox}live/", {"seen": mark}).status_code == 200


def test_it_answers_only_when_something_has_changed(source, inbox, as_bob, root, workspace):
    def mark():
        return as_bob.get(inbox).context["mark"]

    seen = mark()
    refreshed(source)
    assert not news(as_bob, inbox, seen)
    write(root / "quarantined/AGENTS.md", POISON + "More of it.\n")
    refreshed(source)
    assert news(as_bob, inbox, seen)
    seen = mark()
    approve_file(
        file_at(source, "new/AGENTS.md"), digest=file_at(source, "new/AGENTS.md").newest.digest, by=BY
    )
    assert news(as_bob, inbox, seen)
    seen = mark()
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe/AGENTS.md")
    refreshed(source)
    assert news(as_bob, inbox, seen)


def test_one_settled_while_another_comes_is_news(source, inbox, as_bob, root):
    seen = as_bob.get(inbox).context["mark"]
    file = file_at(source, "new/AGENTS.md")
    ContextFile.unscoped.filter(pk=file.pk).update(is_settled=True)
    twin = {"source": source, "workspace": source.workspace, "path": "twin", "file_kind": "context"}
    ContextFile(**twin, first_seen_at=file.changed_at, changed_at=file.changed_at, newest=file.newest).save()
    assert news(as_bob, inbox, seen)


def test_the_moving_part_says_that_it_moved_and_keeps_what_was_ticked(source, inbox, as_bob, root):
    changed, new = file_at(source, "changed/AGENTS.md"), file_at(source, "new/AGENTS.md")
    ticks = [row.tick for row in as_bob.get(inbox).context["rows"] if row.file.pk in {changed.pk, new.pk}]
    write(root / "changed/AGENTS.md", "Other words.\n")
    refreshed(source)
    answer = as_bob.get(f"{inbox}live/", {"seen": "old", "pick": ticks})
    page = answer.content.decode()
    assert {row.file.pk for row in answer.context["rows"] if row.is_ticked} == {new.pk}
    assert page.count(" checked>") == 1
    assert 'hx-swap-oob="innerHTML">Inbox updated at' in page
    assert "<html" not in page


# --- adopting many -------------------------------------------------------------------------------------


def test_the_ticked_are_adopted_and_no_others(source, inbox, as_bob):
    picked = [file_at(source, "changed/AGENTS.md"), file_at(source, "missing/AGENTS.md")]
    answer = as_bob.post(f"{inbox}adopt/", {"pick": [tick(file) for file in picked]}, follow=True)
    assert "2 files adopted." in answer.content.decode()
    assert shown(answer) == ["quarantined", "invalid", "new"]


def test_ticks_are_short_and_the_page_says_what_they_stand_for(source, inbox, as_bob):
    rows = as_bob.get(inbox).context["rows"]
    said = {"shown": [f"{row.file.pk}:{row.digest}" for row in rows], "pick": [rows[-1].tick]}
    assert shown(as_bob.post(f"{inbox}adopt/", said, follow=True)) == STATES[:-1]


def test_all_that_was_shown_can_be_adopted_at_once(source, inbox, as_bob):
    rows = [row for row in as_bob.get(inbox).context["rows"] if row.is_adoptable]
    said = {"shown": [f"{row.file.pk}:{row.digest}" for row in rows], "everything": "1"}
    assert shown(as_bob.post(f"{inbox}adopt/", said, follow=True)) == ["quarantined", "invalid"]


def test_what_has_changed_meanwhile_is_refused_by_name_and_the_rest_goes_on(source, inbox, as_bob, root):
    changed, new = file_at(source, "changed/AGENTS.md"), file_at(source, "new/AGENTS.md")
    write(root / "changed/AGENTS.md", "Something else entirely.\n")
    refreshed(source)
    answer = as_bob.post(f"{inbox}adopt/", {"pick": [tick(changed), tick(new)]}, follow=True)
    page = answer.content.decode()
    assert "changed/AGENTS.md: The file has changed since you looked at it." in page
    assert "1 file adopted." in page
    assert shown(answer) == ["quarantined", "invalid", "missing", "changed"]
    assert file_at(source, "changed/AGENTS.md").agreed.number == 1


def test_a_quarantined_file_cannot_be_slipped_in(source, inbox, as_bob):
    file = file_at(source, "quarantined/AGENTS.md")
    answer = as_bob.post(f"{inbox}adopt/", {"pick": [tick(file)]}, follow=True)
    assert "Waive its findings first" in answer.content.decode()
    assert file_at(source, "quarantined/AGENTS.md").in_force.number == 1


ODD_CHOICES: list[list[str]] = [[], ["x:y"], ["1"], [":"], ["9" * 40 + ":a"], ["٣:a"], ["999999:a"]]


@SOME_OR_ALL
def test_odd_choices_settle_nothing(source, inbox, as_bob, chosen):
    for picks in chosen(ODD_CHOICES):
        answer = as_bob.post(f"{inbox}adopt/", {"pick": picks}, follow=True)
        assert "Tick the files that you want to adopt." in answer.content.decode(), picks
        assert shown(answer) == STATES, picks


def test_a_foreign_file_is_nobodys_choice(source, inbox, as_bob, elsewhere, root):
    theirs = make_source(elsewhere, root / "new")
    refreshed(theirs)
    answer = as_bob.post(f"{inbox}adopt/", {"pick": [tick(file_at(theirs))]}, follow=True)
    assert "Tick the files" in answer.content.decode()
    assert not file_at(theirs).is_settled


def test_people_come_back_to_where_they_were_and_nowhere_else(source, inbox, as_bob):
    back = f"{inbox}?state=new"
    assert as_bob.post(f"{inbox}adopt/", {"back": back}).url == back
    for bad in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", ""):
        assert as_bob.post(f"{inbox}adopt/", {"back": bad}).url == inbox


# --- who may -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.REVIEWER, pytest.param(Role.VIEWER, marks=pytest.mark.hard)])
def test_readers_see_the_inbox_and_no_buttons(source, inbox, workspace, role):
    reader = make_user("Rita")
    join(workspace, reader, role)
    browser = signed_in(reader)
    page = browser.get(inbox).content.decode()
    assert "quarantined/AGENTS.md" in page
    assert "formaction" not in page
    assert 'name="pick"' not in page
    assert browser.post(f"{inbox}adopt/", {"pick": []}).status_code == 403


def test_a_stranger_finds_no_inbox(source, inbox, as_mallory):
    for address in (inbox, f"{inbox}live/"):
        assert as_mallory.get(address).status_code == 404
    assert as_mallory.post(f"{inbox}adopt/").status_code == 404
