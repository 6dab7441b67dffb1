"""Source pages: create, edit, archive, and the progress of refresh runs."""

import re
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

from personas.errors import RecordInUse
from personas.models import AuditEvent
from personas.records.services import archive_record
from personas.roles import Role
from skills.agent_context.services import choose_context
from skills.models import ContextFile, RefreshRun, Source
from skills.refresh.runs import request_refresh
from skills.refresh.source_changes import add_source, rescan_source
from tests.factories import BY, join, make_agent, make_source, make_user, refreshed, signed_in
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
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db


class SourceStage(NamedTuple):
    """Shared records: a source without a refresh, and two more members."""

    source: Source
    files: Path
    pristine: Path
    as_admin: Client
    as_viewer: Client


def newcomer(workspace, name, role):
    user = make_user(name)
    join(workspace, user, role)
    return signed_in(user)


def copy_client(client: Client) -> Client:
    """Return a new client with the same cookies."""
    another = Client()
    another.cookies = deepcopy(client.cookies)
    return another


@pytest.fixture(scope="module", autouse=True)
def source_stage(cast, django_db_blocker, tmp_path_factory):
    top = tmp_path_factory.mktemp("sources")
    root = top / "files"
    (root / "deep").mkdir(parents=True)
    (root / "AGENTS.md").write_text("Be kind.\n")
    (root / "deep" / "AGENTS.md").write_text("Be deep.\n")
    shutil.copytree(root, top / "pristine")
    with override_settings(DRAMATIS_SOURCE_ROOTS=[top]):
        with django_db_blocker.unblock():
            source = make_source(cast.workspace, root)
            as_admin = newcomer(cast.workspace, "Ada", Role.ADMIN)
            as_viewer = newcomer(cast.workspace, "Vera", Role.VIEWER)
        yield SourceStage(source, root, top / "pristine", as_admin, as_viewer)


@pytest.fixture
def tree(source_stage):
    yield source_stage.files
    put_back(source_stage.files, source_stage.pristine)


@pytest.fixture
def source(source_stage, db):
    return deepcopy(source_stage.source)


@pytest.fixture
def as_admin(source_stage, db):
    return copy_client(source_stage.as_admin)


@pytest.fixture
def as_viewer(source_stage, db):
    return copy_client(source_stage.as_viewer)


def new_source(granted, **more):
    return {
        "name": "Team files",
        "source_kind": "folder",
        "allowed_folder": granted.pk,
        "folder": "deep",
        "harnesses": ["plain", "opal"],
        "approval": "automatic",
        "refresh_minutes": "30",
    } | more


def address(source, page=""):
    return f"/w/{source.workspace.slug}/sources/{source.slug}/{page}"


def runs_of(source):
    return RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source)


def page_text(answer):
    return answer.content.decode()


# --- create --------------------------------------------------------------------------------------------


def test_a_new_source_is_refreshed_at_once(workspace, source, as_admin):
    answer = as_admin.post(
        f"/w/{workspace.slug}/sources/new/", new_source(source.allowed_folder), follow=True
    )
    created = Source.objects.in_workspace(workspace).get(slug="team-files")
    assert answer.redirect_chain == [(address(created), 302)]
    assert (created.folder, created.harnesses, created.refresh_minutes) == ("deep", ["plain", "opal"], 30)
    run = runs_of(created).get()
    assert (run.status, run.cause, run.actor_label) == ("queued", "created", "ada@example.com")
    assert "Waiting to start" in page_text(answer)


def test_a_source_of_pushed_files_has_neither_folder_nor_schedule(workspace, source, as_admin):
    body = new_source(source.allowed_folder, source_kind="pushed")
    as_admin.post(f"/w/{workspace.slug}/sources/new/", body)
    created = Source.objects.in_workspace(workspace).get(slug="team-files")
    assert (created.source_kind, created.allowed_folder, created.folder, created.refresh_minutes) == (
        "pushed",
        None,
        "",
        None,
    )


def test_hard_links_are_allowed_in_the_form_of_a_folder(workspace, source, as_admin):
    body = new_source(source.allowed_folder, allow_hard_links="on")
    as_admin.post(f"/w/{workspace.slug}/sources/new/", body)
    created = Source.objects.in_workspace(workspace).get(slug="team-files")
    assert created.allow_hard_links
    assert "Hard links" in page_text(as_admin.get(address(created)))
    as_admin.post(f"/w/{workspace.slug}/sources/new/", body | {"name": "Pushed", "source_kind": "pushed"})
    assert not Source.objects.in_workspace(workspace).get(slug="pushed").allow_hard_links


@pytest.mark.slow
def test_a_hard_link_is_named_on_the_pages_of_the_source_and_of_the_file(source, tree, as_alice):
    refreshed(source)
    (tree / "AGENTS.md").rename(tree / "moved.md")
    (tree / "AGENTS.md").hardlink_to(tree / "moved.md")
    refreshed(source)
    rows = ContextFile.objects.in_workspace(source.workspace_id)
    file: Any = rows.get(source=source, path="AGENTS.md")
    assert (file.status, file.active.number) == ("invalid", 1)
    for url in (address(source), f"/w/{source.workspace.slug}/files/{file.pk}/"):
        assert "The file has 2 hard links" in page_text(as_alice.get(url))


def test_links_that_are_not_followed_are_shown_with_their_reasons(source, tree, as_alice):
    (tree / "again").symlink_to("deep")
    (tree / "deep" / "up").symlink_to("..")
    refreshed(source)
    text = page_text(as_alice.get(address(source)))
    assert "deep/up" in text
    assert "points to a folder that contains it" in text
    assert "link to another folder of the source" in text


@pytest.mark.slow
def test_a_skill_that_refers_to_a_file_outside_its_folder_is_named_in_each_run(source, tree, as_alice):
    skill = tree / ".agents" / "skills" / "tea"
    skill.mkdir(parents=True)
    body = "See [the cups](../../cups.md) and [water](water.md)."
    (skill / "SKILL.md").write_text(f"---\nname: tea\ndescription: Makes tea.\n---\n\n{body}\n")
    for _ in range(2):
        run = refreshed(source)
        assert [(refusal["path"], refusal["rule"]) for refusal in run.refusals] == [
            (".agents/skills/tea/SKILL.md", "reference")
        ]
        assert "../../cups.md" in run.refusals[0]["reason"]
    rows = ContextFile.objects.in_workspace(source.workspace_id)
    file: Any = rows.get(path=".agents/skills/tea/SKILL.md")
    assert file.latest.verdict == "good"
    assert "../../cups.md" in page_text(as_alice.get(f"/w/{source.workspace.slug}/files/{file.pk}/"))


def test_the_source_and_its_first_run_come_together_or_not_at_all(workspace, source):
    values = {"name": "Twin", "allowed_folder": source.allowed_folder, "harnesses": ["plain"]}
    created, run = add_source(workspace, values, by=BY)
    assert run.source == created
    before = RefreshRun.unscoped.count()
    with pytest.raises(Exception, match="harnesses"):
        add_source(workspace, values | {"harnesses": ["unheard-of"]}, by=BY)
    assert RefreshRun.unscoped.count() == before


BAD_INPUT: list[tuple[str, object, str]] = [
    ("name", "", "This field is required."),
    ("allowed_folder", "", "Choose an allowed folder."),
    ("allowed_folder", "999999", "Select a valid choice."),
    ("folder", "../other", "Names in a path cannot be empty, . or .."),
    ("folder", "/etc", "Enter a path relative to the allowed folder"),
    ("harnesses", [], "Select at least one set of discovery rules."),
    ("harnesses", ["unheard-of"], "unheard-of is not one of the available choices."),
    ("approval", "never", "never is not one of the available choices."),
    ("refresh_minutes", "0", "greater than or equal to 1"),
    ("refresh_minutes", "10081", "less than or equal to 10080"),
    ("source_kind", "magic", "magic is not one of the available choices."),
]


@pytest.mark.slow
@SOME_OR_ALL
def test_bad_input_is_named_under_its_field(source, as_admin, chosen):
    home = source.workspace
    for field, value, text in chosen(BAD_INPUT):
        answer = as_admin.post(
            f"/w/{home.slug}/sources/new/", new_source(source.allowed_folder, **{field: value})
        )
        assert answer.status_code == 422, (field, value)
        assert text in " ".join(answer.context["form"].errors[field]), (field, value)
        assert Source.objects.in_workspace(home).count() == 1, (field, value)


def test_a_grant_of_another_workspace_cannot_be_chosen(workspace, elsewhere, tree, as_admin):
    theirs = make_source(elsewhere, tree).allowed_folder
    answer = as_admin.post(f"/w/{workspace.slug}/sources/new/", new_source(theirs))
    assert "allowed_folder" in answer.context["form"].errors
    assert Source.objects.in_workspace(workspace).count() == 1


def test_without_a_grant_the_form_explains_what_an_operator_must_do(elsewhere, as_mallory):
    page = page_text(as_mallory.get(f"/w/{elsewhere.slug}/sources/new/"))
    assert "DRAMATIS_SOURCE_ROOTS" in page
    assert "/operator/" in page
    assert f"manage.py allow_folder {elsewhere.slug}" in page
    assert 'value="pushed" id="id_source_kind_1_0" checked' in page


# --- permissions ---------------------------------------------------------------------------------------


def test_editors_refresh_and_admins_manage(workspace, source, as_bob, as_viewer):
    assert as_bob.get(f"/w/{workspace.slug}/sources/new/").status_code == 403
    assert as_bob.post(address(source, "edit/"), {"name": "Mine"}).status_code == 403
    assert as_bob.post(address(source, "archive/")).status_code == 403
    assert as_bob.post(address(source, "refresh/")).status_code == 302
    assert as_viewer.post(address(source, "refresh/")).status_code == 403
    assert as_viewer.get(address(source)).status_code == 200
    assert runs_of(source).get().cause == "person"


@pytest.mark.slow
def test_members_see_only_the_buttons_they_may_press_and_none_is_a_link(source, as_alice, as_bob, as_viewer):
    pages = [page_text(browser.get(address(source))) for browser in (as_alice, as_bob, as_viewer)]
    assert ["/refresh/" in page for page in pages] == [True, True, False]
    assert ["/archive/" in page for page in pages] == [True, False, False]
    assert as_alice.get(address(source, "refresh/")).status_code == 405


# --- edit and archive ----------------------------------------------------------------------------------


def edited(source, **more):
    return new_source(source.allowed_folder, name=source.name, revision=source.revision) | more


def test_an_edit_requests_a_refresh(source, as_alice):
    assert as_alice.post(address(source, "edit/"), edited(source)).status_code == 302
    source.refresh_from_db()
    assert (source.folder, source.revision) == ("deep", 2)
    assert runs_of(source).get().cause == "edited"


def test_an_edit_without_changes_requests_no_refresh(source, as_alice):
    same = {"folder": "", "harnesses": source.harnesses, "refresh_minutes": 15}
    as_alice.post(address(source, "edit/"), edited(source, **same))
    source.refresh_from_db()
    assert source.revision == 1
    assert not runs_of(source).exists()


def test_the_kind_of_a_source_never_changes(source, as_alice):
    as_alice.post(address(source, "edit/"), edited(source, source_kind="pushed"))
    source.refresh_from_db()
    assert source.source_kind == "folder"


@pytest.mark.slow
def test_approval_by_a_rule_holds_at_once(workspace, tree, as_alice):
    source = make_source(workspace, tree, "By hand", approval="manual")
    refreshed(source)
    rows = ContextFile.objects.in_workspace(workspace)
    assert not rows.filter(active__isnull=False).exists()
    same = {"folder": "", "harnesses": source.harnesses, "refresh_minutes": 15}
    as_alice.post(address(source, "edit/"), edited(source, **same))
    assert rows.filter(active__isnull=False).count() == 2


@pytest.mark.slow
def test_restoring_a_revision_requests_a_refresh(source, as_alice):
    as_alice.post(address(source, "edit/"), edited(source))
    runs_of(source).delete()
    as_alice.post(address(source, "history/1/restore/"))
    source.refresh_from_db()
    assert source.folder == ""
    assert runs_of(source).get().cause == "edited"


def test_rules_that_an_agent_works_by_stay(source, as_alice, agent, by_alice):
    choose_context(agent, source, "pi", working_directory="", expected=agent.revision, by=by_alice)
    answer = as_alice.post(address(source, "edit/"), edited(source))
    assert (
        "Agents still use the rules that you removed: Pilot (pi)."
        in answer.context["form"].errors["harnesses"][0]
    )
    source.refresh_from_db()
    assert "pi" in source.harnesses


def test_a_source_that_agents_read_is_not_archived(source, as_alice, agent, by_alice):
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=by_alice)
    answer = as_alice.post(address(source, "archive/"), follow=True)
    assert "In use by Pilot" in page_text(answer)
    source.refresh_from_db()
    assert not source.is_archived
    with pytest.raises(RecordInUse, match="Pilot"):
        archive_record(source, by=by_alice)


@pytest.mark.slow
def test_an_archived_source_is_not_refreshed_until_it_is_restored(source, as_alice):
    as_alice.post(address(source, "archive/"))
    answer = as_alice.post(address(source, "refresh/"), follow=True)
    assert "This source is archived" in page_text(answer)
    assert not runs_of(source).exists()
    as_alice.post(address(source, "restore/"))
    assert runs_of(source).get().status == "queued"


def test_a_rescan_evaluates_the_known_files_again(workspace, tree):
    source = make_source(workspace, tree, "By hand", approval="manual")
    refreshed(source)
    source.approval = "automatic"
    source.save()
    rescan_source(source, cause="edited", by=BY)
    assert ContextFile.objects.in_workspace(workspace).filter(active=None).count() == 0


# --- page content --------------------------------------------------------------------------------------


def test_the_list_shows_status_files_and_readers(source, as_alice, agent, by_alice, workspace):
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=by_alice)
    page = page_text(as_alice.get(f"/w/{workspace.slug}/sources/"))
    assert "Not refreshed yet" in page
    refreshed(source)
    page = page_text(as_alice.get(f"/w/{workspace.slug}/sources/"))
    assert all(
        text in page for text in ("Done", "2 new", "Pilot", "Every 15 minutes", str(source.allowed_folder))
    )


@pytest.mark.slow
def test_the_list_needs_the_same_number_of_queries_for_any_length(workspace, tree, as_alice, by_alice):
    def list_queries():
        with CaptureQueriesContext(connection) as queries:
            as_alice.get(f"/w/{workspace.slug}/sources/")
        # Session, user and role are loaded for every page.
        return [
            q["sql"]
            for q in queries
            if not re.search("session|personas_(user|membership)|SAVEPOINT", q["sql"])
        ]

    def add(number):
        source = make_source(workspace, tree, f"Source {number}")
        agent = make_agent(workspace)
        choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=by_alice)
        refreshed(source)

    add(1)
    as_alice.get(f"/w/{workspace.slug}/sources/")
    queries_of_one = list_queries()
    for number in range(2, 5):
        add(number)
    queries_of_four = list_queries()
    assert len(queries_of_four) == len(queries_of_one)
    assert len(queries_of_four) <= 10, "\n".join(queries_of_four)  # nine, and the count of the inbox


def test_the_page_shows_files_with_their_statuses_and_refusals_with_their_reasons(source, tree, as_alice):
    (tree / "OPAL.md").mkdir()
    refreshed(source)
    page = page_text(as_alice.get(address(source)))
    file = ContextFile.objects.in_workspace(source.workspace_id).get(path="deep/AGENTS.md")
    assert f"/files/{file.pk}/" in page
    assert "This is a folder, but a file is expected." in page
    assert "2 new" in page
    assert re.search(r"\b\d+ s\b", page)


def test_files_are_narrowed_by_status(source, as_alice):
    refreshed(source)
    ContextFile.objects.in_workspace(source.workspace_id).filter(path="AGENTS.md").update(status="invalid")
    page = page_text(as_alice.get(address(source, "?status=invalid")))
    assert "1–1 of 1" in page
    assert "deep/AGENTS.md" not in page
    assert "No files with this status" in page_text(as_alice.get(address(source, "?status=missing")))
    assert "1–2 of 2" in page_text(as_alice.get(address(source, "?status=made-up&page=x")))


def test_a_withdrawn_root_is_reported_and_its_files_stay(source, as_alice, settings):
    refreshed(source)
    settings.DRAMATIS_SOURCE_ROOTS = []
    run = refreshed(source)
    page = page_text(as_alice.get(address(source)))
    assert run.status == "failed"
    assert "Operators no longer allow this folder" in page
    assert "The previous files stay in use" in page
    assert ContextFile.objects.in_workspace(source.workspace_id).filter(active__isnull=False).count() == 2


def test_text_from_members_is_escaped(workspace, tree, as_alice):
    (tree / "<b>x").mkdir()
    (tree / "<b>x" / "AGENTS.md").write_text("Hello.\n")
    source = make_source(workspace, tree, "<script>alert(1)</script>")
    refreshed(source)
    page = page_text(as_alice.get(address(source)))
    assert "<script>alert" not in page
    assert "<b>x" not in page
    assert "&lt;b&gt;x/AGENTS.md" in page


# --- live parts ----------------------------------------------------------------------------------------


def live(browser, source, **query):
    return browser.get(address(source, "live/"), query)


def get_progress_status(answer):
    return answer.context["progress"].signature, answer.context["progress"].last_finished_pk


def test_live_parts_are_silent_while_nothing_happens(source, as_viewer):
    refreshed(source)
    signature, ended = get_progress_status(as_viewer.get(address(source)))
    quiet = live(as_viewer, source, seen=signature, ended=ended)
    assert (quiet.status_code, quiet.content) == (204, b"")


@pytest.mark.slow
def test_progress_is_shown_during_a_refresh(source, as_viewer):
    refreshed(source)
    signature, ended = get_progress_status(as_viewer.get(address(source)))
    run = request_refresh(source, cause="person", by=BY)
    assert "Waiting to start" in page_text(live(as_viewer, source, seen=signature, ended=ended))
    runs_of(source).filter(pk=run.pk).update(
        status="running", started_at=timezone.now(), seen=41, read=7, refused=3
    )
    answer = live(as_viewer, source, seen=signature, ended=ended)
    figures = page_text(answer)
    assert all(f"<dd>{number}</dd>" in figures for number in (41, 7, 3))
    assert "source-results" not in figures
    signature, _ = get_progress_status(answer)
    assert live(as_viewer, source, seen=signature, ended=ended).status_code == 204
    runs_of(source).filter(pk=run.pk).update(seen=42)
    assert live(as_viewer, source, seen=signature, ended=ended).status_code == 200


def test_the_end_of_a_refresh_updates_the_files(source, as_viewer):
    signature, ended = get_progress_status(as_viewer.get(address(source)))
    refreshed(source)
    over = page_text(live(as_viewer, source, seen=signature, ended=ended, status="new"))
    assert 'id="source-results" hx-swap-oob="outerHTML"' in over
    assert "Refresh finished: Done." in over
    assert "deep/AGENTS.md" in over
    # The links contain the parameters of the page, not those of the live request.
    assert "seen=" not in over.partition("source-results")[2]


def test_a_poll_needs_few_queries(source, as_viewer):
    refreshed(source)
    signature, ended = get_progress_status(as_viewer.get(address(source)))
    with CaptureQueriesContext(connection) as queries:
        live(as_viewer, source, seen=signature, ended=ended)
    assert len(queries) <= 6


def test_every_action_is_in_the_audit_log(source, as_alice, workspace):
    as_alice.post(address(source, "edit/"), edited(source))
    as_alice.post(address(source, "archive/"))
    as_alice.post(address(source, "restore/"))
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="source").order_by("pk")
    assert [event.verb for event in events] == ["created", "edited", "archived", "restored"]
