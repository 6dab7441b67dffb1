"""Source allowed_folders: granted and withdrawn by operators, visible to the workspace."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from personas.errors import InvalidInput, RecordInUse
from personas.models import AuditEvent
from skills.models import AllowedFolder, ContextFile, RefreshRun
from skills.refresh.runs import claim_run, request_refresh
from skills.sources.allowed_folders import allow_folder, withdraw_folder
from tests.factories import BY, make_operator, make_source, refreshed, signed_in_operator
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

pytestmark = pytest.mark.django_db
GRANTS = "/operator/skills/allowedfolder/"


@pytest.fixture
def root(tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    (tmp_path / "team").mkdir()
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    return tmp_path


@pytest.fixture
def as_operator(db):
    return signed_in_operator(make_operator())


def last_event(workspace):
    return AuditEvent.objects.in_workspace(workspace).latest("pk")


# --- services ------------------------------------------------------------------------------------------


def test_a_grant_is_noted_in_the_workspace(workspace, root):
    allowed_folder = allow_folder(workspace, f"{root}/team/", note="For support", by=BY)
    assert allowed_folder.path == f"{root}/team"
    event = last_event(workspace)
    assert (event.verb, event.object_label) == ("granted", allowed_folder.path)
    assert event.after == {"path": allowed_folder.path, "note": "For support"}


@pytest.mark.parametrize("path", ["/", "/etc", "team", "{root}/../other", "{root}-beside", ""])
def test_only_folders_below_a_root_are_granted(workspace, root, path):
    with pytest.raises(InvalidInput) as caught:
        allow_folder(workspace, path.format(root=root), by=BY)
    assert "path" in caught.value.errors
    assert not AllowedFolder.objects.in_workspace(workspace).exists()


def test_a_folder_is_granted_once(workspace, root):
    allow_folder(workspace, str(root), by=BY)
    with pytest.raises(InvalidInput) as caught:
        allow_folder(workspace, f"{root}/", by=BY)
    assert "path" in caught.value.errors


def test_an_unused_grant_is_withdrawn(workspace, root):
    allowed_folder = allow_folder(workspace, str(root), by=BY)
    withdraw_folder(allowed_folder, by=BY)
    assert not AllowedFolder.objects.in_workspace(workspace).exists()
    assert (last_event(workspace).verb, last_event(workspace).before["path"]) == ("withdrawn", str(root))


def test_a_grant_in_use_stays_and_the_refusal_names_the_source(workspace, root):
    make_source(workspace, root)
    with pytest.raises(RecordInUse, match="House files"):
        withdraw_folder(AllowedFolder.objects.in_workspace(workspace).get(), by=BY)
    assert AllowedFolder.objects.in_workspace(workspace).count() == 1


# --- admin site ----------------------------------------------------------------------------------------


def test_an_operator_grants_a_folder(workspace, root, as_operator):
    body = {"workspace": workspace.pk, "path": f"{root}/team/", "note": "For support"}
    assert as_operator.post(f"{GRANTS}add/", body).status_code == 302
    allowed_folder = AllowedFolder.objects.in_workspace(workspace).get()
    assert (allowed_folder.path, allowed_folder.note) == (f"{root}/team", "For support")
    assert (last_event(workspace).verb, last_event(workspace).actor_label) == ("granted", "operator Otto")


def test_the_form_names_the_roots_and_refuses_others_under_the_field(workspace, root, as_operator):
    assert str(root) in as_operator.get(f"{GRANTS}add/").content.decode()
    answer = as_operator.post(f"{GRANTS}add/", {"workspace": workspace.pk, "path": "/etc"})
    assert answer.status_code == 200
    assert "not below any of the roots" in " ".join(answer.context["adminform"].form.errors["path"])
    assert not AllowedFolder.objects.in_workspace(workspace).exists()


def test_without_roots_the_form_shows_a_hint(settings, as_operator):
    settings.DRAMATIS_SOURCE_ROOTS = []
    assert "DRAMATIS_SOURCE_ROOTS is not set" in as_operator.get(f"{GRANTS}add/").content.decode()


def test_a_note_can_be_changed_and_a_folder_cannot(workspace, root, as_operator):
    allowed_folder = allow_folder(workspace, str(root), by=BY)
    body = {"path": f"{root}/team", "note": "Shared"}
    assert as_operator.post(f"{GRANTS}{allowed_folder.pk}/change/", body).status_code == 302
    allowed_folder.refresh_from_db()
    assert (allowed_folder.path, allowed_folder.note) == (str(root), "Shared")
    assert (last_event(workspace).verb, last_event(workspace).kind) == ("edited", "allowed_folder")


def test_an_operator_takes_an_unused_grant_back(workspace, root, as_operator):
    allowed_folder = allow_folder(workspace, str(root), by=BY)
    assert as_operator.post(f"{GRANTS}{allowed_folder.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not AllowedFolder.objects.in_workspace(workspace).exists()
    assert last_event(workspace).verb == "withdrawn"


def test_an_operator_cannot_take_a_grant_from_under_a_source(workspace, root, as_operator):
    make_source(workspace, root)
    allowed_folder = AllowedFolder.objects.in_workspace(workspace).get()
    page = as_operator.get(f"{GRANTS}{allowed_folder.pk}/delete/").content.decode()
    assert "House files" in page
    as_operator.post(f"{GRANTS}{allowed_folder.pk}/delete/", {"post": "yes"})
    chosen = {"action": "delete_selected", "_selected_action": [allowed_folder.pk], "post": "yes"}
    as_operator.post(GRANTS, chosen)
    assert AllowedFolder.objects.in_workspace(workspace).count() == 1
    assert last_event(workspace).verb != "withdrawn"


def test_several_unused_grants_go_at_once_each_with_its_event(workspace, root, as_operator):
    allowed_folders = [allow_folder(workspace, path, by=BY) for path in (str(root), f"{root}/team")]
    chosen = {
        "action": "delete_selected",
        "_selected_action": [allowed_folder.pk for allowed_folder in allowed_folders],
        "post": "yes",
    }
    as_operator.post(GRANTS, chosen)
    assert not AllowedFolder.objects.in_workspace(workspace).exists()
    events = AuditEvent.objects.in_workspace(workspace).filter(verb="withdrawn")
    assert sorted(event.object_label for event in events) == [str(root), f"{root}/team"]


TABLES = ("source", "contextfile", "refreshrun", "filerevision", "pushedfile", "ruleset")
EMPTY_TABLES = ("waiver", "agentcontext", "fileagent")


@pytest.mark.slow
def test_everything_else_is_read_only(workspace, root, as_operator):
    refreshed(make_source(workspace, root))
    for table in (*TABLES, *EMPTY_TABLES):
        assert as_operator.get(f"/operator/skills/{table}/").status_code == 200, table
        assert as_operator.get(f"/operator/skills/{table}/add/").status_code == 403, table


def test_rows_are_shown_and_not_touched(workspace, root, as_operator):
    source = make_source(workspace, root)
    refreshed(source)
    file = ContextFile.objects.in_workspace(workspace).get()
    for address in (f"source/{source.pk}", f"contextfile/{file.pk}", f"refreshrun/{source.runs.get().pk}"):
        assert as_operator.get(f"/operator/skills/{address}/change/").status_code == 200
        assert as_operator.post(f"/operator/skills/{address}/change/", {"label": "Mine"}).status_code == 403
        assert as_operator.post(f"/operator/skills/{address}/delete/", {"post": "yes"}).status_code == 403


def test_members_do_not_see_grants(as_alice):
    assert as_alice.get(GRANTS).status_code in {302, 404}


# --- commands ------------------------------------------------------------------------------------------


def run_command(*args):
    out = StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


def test_a_folder_is_granted_from_the_command_line(workspace, root):
    assert f"{workspace.name} can read {root}/team" in run_command("allow_folder", "harbour", f"{root}/team")
    assert last_event(workspace).verb == "granted"
    with pytest.raises(CommandError, match="any of the roots"):
        run_command("allow_folder", "harbour", "/etc")
    with pytest.raises(CommandError, match="Workspace “nowhere” not found"):
        run_command("allow_folder", "nowhere", str(root))


def test_a_source_is_refreshed_from_the_command_line(workspace, root):
    (root / "CLAUDE.md").mkdir()
    source = make_source(workspace, root)
    output = run_command("refresh_source", "harbour", source.slug)
    assert "1 new" in output
    assert "CLAUDE.md: This is a folder, but a file is expected." in output
    run = RefreshRun.objects.in_workspace(workspace).get()
    assert (run.status, run.cause) == ("done", "command")


def test_the_command_shows_why_it_did_not_refresh(workspace, root, settings):
    source = make_source(workspace, root)
    with pytest.raises(CommandError, match="Source “nothing” not found"):
        run_command("refresh_source", "harbour", "nothing")
    with pytest.raises(CommandError, match="not found"):
        run_command("refresh_source", "nowhere", source.slug)
    claim_run(workspace.pk, request_refresh(source, cause="person", by=BY).pk)
    with pytest.raises(CommandError, match="A worker is already refreshing"):
        run_command("refresh_source", "harbour", source.slug)
    RefreshRun.objects.in_workspace(workspace).delete()
    settings.DRAMATIS_SOURCE_ROOTS = []
    with pytest.raises(CommandError, match="Operators no longer allow this folder"):
        run_command("refresh_source", "harbour", source.slug)
