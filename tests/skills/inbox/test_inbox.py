"""The context inbox: order, filters, counts, polling, bulk approval and permissions."""

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
from skills.models import AssignedTo, ContextFile, Source
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
from tests.skills.files.file_samples import (
    GOOD,
    POISON,
    approve_file_at,
    file_at,
    make_source_in_every_status,
    write,
    write_skill,
)
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db
CABIN = "/w/cabin/inbox/"
STATUSES = ["quarantined", "invalid", "missing", "changed", "new"]


class InboxSource(NamedTuple):
    """A source with a file in every status; made once per module because it takes long."""

    alice: User
    bob: User
    source: Source
    files: Path
    pristine: Path


@pytest.fixture(scope="module")
def prepared(django_db_setup, django_db_blocker, tmp_path_factory):
    top = tmp_path_factory.mktemp("inbox")
    with rows_of_a_module(django_db_blocker), override_settings(DRAMATIS_SOURCE_ROOTS=[top]):
        with django_db_blocker.unblock():
            alice, bob = make_user("Alice"), make_user("Bob")
            workspace = make_workspace("Harbour", owner=alice)
            join(workspace, bob)
            (top / "files").mkdir()
            source = make_source_in_every_status(workspace, top / "files")
        shutil.copytree(top / "files", top / "pristine")
        yield InboxSource(alice, bob, source, top / "files", top / "pristine")


@pytest.fixture
def alice(prepared, db):
    return User.objects.get(pk=prepared.alice.pk)


@pytest.fixture
def bob(prepared, db):
    return User.objects.get(pk=prepared.bob.pk)


@pytest.fixture
def workspace(prepared, db):
    return Workspace.objects.get(pk=prepared.source.workspace_id)


@pytest.fixture
def root(prepared):
    yield prepared.files
    put_back(prepared.files, prepared.pristine)


@pytest.fixture
def source(prepared, workspace, root):
    return Source.objects.in_workspace(workspace).get(pk=prepared.source.pk)


@pytest.fixture
def cabin(alice, bob, tmp_path, settings):
    """A second workspace of Alice and Bob without a source; tests may add one below tmp_path."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    cabin = make_workspace("Cabin", owner=alice)
    join(cabin, bob)
    return cabin


@pytest.fixture
def inbox(workspace):
    return f"/w/{workspace.slug}/inbox/"


def list_statuses(response):
    return [row.file.status for row in response.context["rows"]]


def get_checkbox_value(file):
    return f"{file.pk}:{file.latest.digest if file.exists else ''}"


# --- content -------------------------------------------------------------------------------------------


def test_pending_files_are_shown_by_severity_with_reasons(source, inbox, as_bob):
    response = as_bob.get(inbox)
    page = response.content.decode()
    assert list_statuses(response) == STATUSES
    assert "changes the displayed order" in page
    assert "Byte 21 (0xFF) is not UTF-8." in page
    assert "no longer in its source" in page
    assert "Revision 1 is live, but no prompt contains it." in page
    # The status text is part of a poll response only.
    assert "Inbox updated" not in page


@pytest.mark.slow
def test_the_preview_shows_changes_with_hidden_characters_visible(
    source, inbox, as_bob, as_mallory, as_alice
):
    page = as_bob.get(inbox).content.decode()
    file = file_at(source, "quarantined/AGENTS.md")
    preview_url = f"/w/{source.workspace.slug}/files/{file.pk}/peek/"
    assert f'hx-get="{preview_url}"' in page
    assert f"files/{file.pk}/#diff-title" in page
    # The link to the waiver form is shown only to members who may waive.
    assert f"files/{file.pk}/#waive-title" not in page
    assert f"files/{file.pk}/#waive-title" in as_alice.get(inbox).content.decode()
    preview = as_bob.get(preview_url).content.decode()
    assert "From revision 1 to 2" in preview
    assert "U+202E" in preview
    assert "<html" not in preview
    assert as_mallory.get(preview_url).status_code == 404
    new = file_at(source, "new/AGENTS.md")
    assert f"/files/{new.pk}/peek/" not in page
    assert (
        "Nothing to compare here."
        in as_bob.get(preview_url.replace(str(file.pk), str(new.pk))).content.decode()
    )


def test_settled_files_are_not_shown(source, inbox, as_bob):
    approve_file_at(source, "changed/AGENTS.md")
    approve_file_at(source, "missing/AGENTS.md")
    ignore_file(file_at(source, "invalid/AGENTS.md"), by=BY)
    assert list_statuses(as_bob.get(inbox)) == ["quarantined", "new"]


def test_files_of_an_archived_source_are_not_shown(source, inbox, as_bob):
    archive_record(source, by=BY)
    assert list_statuses(as_bob.get(inbox)) == []


@pytest.mark.slow
def test_an_empty_inbox_says_what_to_do_next(cabin, tmp_path, as_alice, as_bob):
    assert "Add a source" in as_alice.get(CABIN).content.decode()
    assert "when an owner or admin adds a folder" in as_bob.get(CABIN).content.decode()
    refreshed(make_source(cabin, tmp_path))
    assert "All done" in as_bob.get(CABIN).content.decode()


@pytest.mark.slow
def test_status_source_and_search_filter_the_inbox_and_are_counted(source, inbox, as_bob, workspace, root):
    other = make_source(workspace, root / "new", "Other files")
    refreshed(other)
    response = as_bob.get(inbox, {"status": "new"})
    assert [(tab["label"], tab["count"]) for tab in response.context["tabs"]] == [
        ("All", 6),
        ("Quarantined", 1),
        ("Invalid", 1),
        ("Missing", 1),
        ("Changed", 1),
        ("New", 2),
    ]
    assert [(one["name"], one["count"]) for one in response.context["sources"]] == [
        ("All sources", 2),
        ("House files", 1),
        ("Other files", 1),
    ]
    assert len(list_statuses(as_bob.get(inbox, {"status": "new", "source": other.slug}))) == 1
    assert list_statuses(as_bob.get(inbox, {"q": "INVALID/"})) == ["invalid"]
    assert list_statuses(as_bob.get(inbox, {"status": "missing", "q": "changed"})) == []
    assert "No results" in as_bob.get(inbox, {"q": "zzz"}).content.decode()
    assert list_statuses(as_bob.get(inbox, {"source": "elsewhere"})) == []


@pytest.mark.slow
@SOME_OR_ALL
def test_invalid_parameters_show_the_unfiltered_inbox(source, inbox, as_bob, chosen):
    odd = [{"status": "odd"}, {"page": "99"}, {"page": "x"}, {"q": "\x00"}, {"seen": "x", "pick": ["1", ":"]}]
    for address, captured in chosen(product((inbox, f"{inbox}live/"), odd)):
        assert list_statuses(as_bob.get(address, captured)) == STATUSES, (address, captured)


@pytest.mark.slow
def test_the_inbox_counts_the_agents_that_read_a_file(source, inbox, as_bob, workspace, root):
    for number in range(3):
        agent = make_agent(workspace, f"reader-{number}")
        choose_context(agent, source, "plain", working_directory="new", expected=agent.revision, by=BY)
    archive_record(agent, by=BY)
    gone = make_agent(workspace, "late")
    choose_context(gone, source, "plain", working_directory="missing", expected=gone.revision, by=BY)
    readers = {row.file.status: row.reader_count for row in as_bob.get(inbox).context["rows"]}
    assert readers == {"new": 2, "missing": 1, "quarantined": 0, "invalid": 0, "changed": 0}


def test_the_inbox_counts_the_agents_a_skill_is_assigned_to(cabin, tmp_path, as_bob):
    agent = make_agent(cabin, "pilot")
    source = make_source(cabin, tmp_path)
    paths = [write_skill(tmp_path, name) for name in ("chosen", "everybodys", "found")]
    refreshed(source)
    assign_skill_file(file_at(source, paths[0]), AssignedTo.SELECTED, [agent], by=BY)
    assign_skill_file(file_at(source, paths[1]), AssignedTo.ALL, [], by=BY)
    response = as_bob.get(CABIN)
    assert {row.file.name: row.reader_count for row in response.context["rows"]} == {
        "chosen": 1,
        "everybodys": None,
        "found": 0,
    }
    assert "read by all agents" in response.content.decode()
    assert "Not used in prompts until someone trusts it." in response.content.decode()


@pytest.mark.slow
def test_refusals_of_the_last_refresh_are_shown_unless_they_have_a_row(source, inbox, as_bob, root):
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe/AGENTS.md")
    (root / "new/AGENTS.md").unlink()
    os.mkfifo(root / "new/AGENTS.md")
    refreshed(source)
    response = as_bob.get(inbox)
    [refused] = response.context["refused"]
    assert [one["path"] for one in refused.refusals] == ["pipe/AGENTS.md"]
    assert list_statuses(response) == ["quarantined", "invalid", "invalid", "missing", "changed"]
    assert as_bob.get(inbox, {"status": "new"}).context["refused"] == []
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
    assert (len(refused.refusals), refused.more) == (20, 3)


def test_a_hostile_path_is_escaped(cabin, tmp_path, as_bob):
    source = make_source(cabin, tmp_path)
    write(tmp_path / '"><img src=x>' / "AGENTS.md", GOOD)
    refreshed(source)
    page = as_bob.get(CABIN).content.decode()
    assert "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page


# --- number of queries ---------------------------------------------------------------------------------


def list_queries(browser, address):
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(address).status_code == 200
    return [query["sql"][:90] for query in captured]


@pytest.mark.slow
def test_the_inbox_needs_few_queries_whatever_its_length(source, inbox, as_bob, workspace, root):
    agent = make_agent(workspace, "reader")
    choose_context(agent, source, "plain", working_directory="new", expected=agent.revision, by=BY)
    os.mkfifo(root / "AGENTS.md")
    refreshed(source)
    as_bob.get(inbox)
    short = list_queries(as_bob, inbox)
    for number in range(6):
        write(root / f"more-{number}/AGENTS.md", GOOD)
        write_skill(root, f"skill-{number}")
        agent = make_agent(workspace)
        choose_context(agent, source, "pi", working_directory=f"more-{number}", expected=1, by=BY)
    refreshed(source)
    long = list_queries(as_bob, inbox)
    assert len(long) == len(short), long
    # Authentication takes three: session, user, memberships. The rest are the page's own queries.
    assert len(long) <= 3 + 12, long


def test_a_poll_without_changes_needs_few_queries(source, inbox, as_bob):
    mark = as_bob.get(inbox).context["mark"]
    with CaptureQueriesContext(connection) as captured:
        assert as_bob.get(f"{inbox}live/", {"seen": mark}).status_code == 204
    assert len(captured) <= 3 + 4


def test_the_sidebar_counts_pending_files_with_one_query(source, workspace, as_bob):
    with CaptureQueriesContext(connection) as captured:
        assert NAV_COUNTERS["inbox:list"](workspace) == 5
    assert len(captured) == 1
    assert NAV_COUNTERS["inbox:list"] is count_pending_files
    assert re.search(r'dr-nav-count"[^>]*>5<', as_bob.get(f"/w/{workspace.slug}/members/").content.decode())


@pytest.mark.slow
def test_a_long_inbox_has_pages(cabin, tmp_path, as_bob):
    source = make_source(cabin, tmp_path)
    for number in range(53):
        write(tmp_path / f"{number:02}/AGENTS.md", GOOD)
    refreshed(source)
    assert len(list_statuses(as_bob.get(CABIN))) == 50
    response = as_bob.get(CABIN, {"page": "2"})
    assert len(list_statuses(response)) == 3
    assert response.context["back"].endswith("?page=2")


# --- live ----------------------------------------------------------------------------------------------


def has_changed(browser, inbox, mark):
    return browser.get(f"{inbox}live/", {"seen": mark}).status_code == 200


@pytest.mark.slow
def test_a_poll_returns_content_only_after_a_change(source, inbox, as_bob, root, workspace):
    def mark():
        return as_bob.get(inbox).context["mark"]

    seen_mark = mark()
    refreshed(source)
    assert not has_changed(as_bob, inbox, seen_mark)
    write(root / "quarantined/AGENTS.md", POISON + "More of it.\n")
    refreshed(source)
    assert has_changed(as_bob, inbox, seen_mark)
    seen_mark = mark()
    approve_file(
        file_at(source, "new/AGENTS.md"), digest=file_at(source, "new/AGENTS.md").latest.digest, by=BY
    )
    assert has_changed(as_bob, inbox, seen_mark)
    seen_mark = mark()
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe/AGENTS.md")
    refreshed(source)
    assert has_changed(as_bob, inbox, seen_mark)


def test_one_settled_while_another_arrives_is_a_change(source, inbox, as_bob, root):
    seen_mark = as_bob.get(inbox).context["mark"]
    file = file_at(source, "new/AGENTS.md")
    ContextFile.unscoped.filter(pk=file.pk).update(is_resolved=True)
    twin = {"source": source, "workspace": source.workspace, "path": "twin", "file_kind": "context"}
    ContextFile(**twin, first_seen_at=file.changed_at, changed_at=file.changed_at, latest=file.latest).save()
    assert has_changed(as_bob, inbox, seen_mark)


@pytest.mark.slow
def test_the_live_part_announces_the_update_and_keeps_checked_boxes(source, inbox, as_bob, root):
    changed, new = file_at(source, "changed/AGENTS.md"), file_at(source, "new/AGENTS.md")
    checked = [
        row.checkbox_value for row in as_bob.get(inbox).context["rows"] if row.file.pk in {changed.pk, new.pk}
    ]
    write(root / "changed/AGENTS.md", "Other words.\n")
    refreshed(source)
    response = as_bob.get(f"{inbox}live/", {"seen": "old", "pick": checked})
    page = response.content.decode()
    assert {row.file.pk for row in response.context["rows"] if row.is_checked} == {new.pk}
    assert page.count(" checked>") == 1
    assert 'hx-swap-oob="innerHTML">Inbox updated at' in page
    assert "<html" not in page


# --- bulk approval -------------------------------------------------------------------------------------


def test_only_the_checked_files_are_approved(source, inbox, as_bob):
    picked = [file_at(source, "changed/AGENTS.md"), file_at(source, "missing/AGENTS.md")]
    response = as_bob.post(
        f"{inbox}approve/", {"pick": [get_checkbox_value(file) for file in picked]}, follow=True
    )
    assert "2 files approved." in response.content.decode()
    assert list_statuses(response) == ["quarantined", "invalid", "new"]


def test_checkbox_values_are_short_and_expanded_from_the_page(source, inbox, as_bob):
    rows = as_bob.get(inbox).context["rows"]
    data = {"shown": [f"{row.file.pk}:{row.digest}" for row in rows], "pick": [rows[-1].checkbox_value]}
    assert list_statuses(as_bob.post(f"{inbox}approve/", data, follow=True)) == STATUSES[:-1]


@pytest.mark.slow
def test_all_files_of_the_page_can_be_approved_at_once(source, inbox, as_bob):
    rows = [row for row in as_bob.get(inbox).context["rows"] if row.is_approvable]
    data = {"shown": [f"{row.file.pk}:{row.digest}" for row in rows], "everything": "1"}
    assert list_statuses(as_bob.post(f"{inbox}approve/", data, follow=True)) == ["quarantined", "invalid"]


def test_a_file_that_changed_meanwhile_is_refused_and_the_others_are_approved(source, inbox, as_bob, root):
    changed, new = file_at(source, "changed/AGENTS.md"), file_at(source, "new/AGENTS.md")
    write(root / "changed/AGENTS.md", "Something else entirely.\n")
    refreshed(source)
    response = as_bob.post(
        f"{inbox}approve/", {"pick": [get_checkbox_value(changed), get_checkbox_value(new)]}, follow=True
    )
    page = response.content.decode()
    assert "changed/AGENTS.md: The file changed after you opened this page." in page
    assert "1 file approved." in page
    assert list_statuses(response) == ["quarantined", "invalid", "missing", "changed"]
    assert file_at(source, "changed/AGENTS.md").approved.number == 1


def test_a_quarantined_file_cannot_be_approved_from_the_inbox(source, inbox, as_bob):
    file = file_at(source, "quarantined/AGENTS.md")
    response = as_bob.post(f"{inbox}approve/", {"pick": [get_checkbox_value(file)]}, follow=True)
    assert "allow its findings first" in response.content.decode()
    assert file_at(source, "quarantined/AGENTS.md").active.number == 1


ODD_CHOICES: list[list[str]] = [[], ["x:y"], ["1"], [":"], ["9" * 40 + ":a"], ["٣:a"], ["999999:a"]]


@pytest.mark.slow
@SOME_OR_ALL
def test_malformed_selections_settle_nothing(source, inbox, as_bob, chosen):
    for picks in chosen(ODD_CHOICES):
        response = as_bob.post(f"{inbox}approve/", {"pick": picks}, follow=True)
        assert "Select the files that you want to approve." in response.content.decode(), picks
        assert list_statuses(response) == STATUSES, picks


def test_a_foreign_file_cannot_be_selected(source, inbox, as_bob, elsewhere, root):
    theirs = make_source(elsewhere, root / "new")
    refreshed(theirs)
    response = as_bob.post(f"{inbox}approve/", {"pick": [get_checkbox_value(file_at(theirs))]}, follow=True)
    assert "Select the files" in response.content.decode()
    assert not file_at(theirs).is_resolved


def test_approval_redirects_back_but_never_to_another_site(source, inbox, as_bob):
    back = f"{inbox}?status=new"
    assert as_bob.post(f"{inbox}approve/", {"back": back}).url == back
    for bad in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", ""):
        assert as_bob.post(f"{inbox}approve/", {"back": bad}).url == inbox


# --- permissions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.REVIEWER, pytest.param(Role.VIEWER, marks=pytest.mark.hard)])
def test_readers_see_the_inbox_and_no_buttons(source, inbox, workspace, role):
    reader = make_user("Rita")
    join(workspace, reader, role)
    browser = signed_in(reader)
    page = browser.get(inbox).content.decode()
    assert "quarantined/AGENTS.md" in page
    assert "formaction" not in page
    assert 'name="pick"' not in page
    assert browser.post(f"{inbox}approve/", {"pick": []}).status_code == 403


def test_an_outsider_gets_404_for_the_inbox(source, inbox, as_mallory):
    for address in (inbox, f"{inbox}live/"):
        assert as_mallory.get(address).status_code == 404
    assert as_mallory.post(f"{inbox}approve/").status_code == 404
