"""Deletion of a workspace: who can, what ends at once, and how it is restored."""

from datetime import timedelta

import pytest
import time_machine
from django.core.cache import cache
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.format import BOT
from personas.api_keys.services import create_key
from personas.errors import DomainError
from personas.members.services import invite_member
from personas.models import ApiKey, AuditEvent, Invitation, Workspace
from personas.notifications.selectors import find_members_to_email
from personas.roles import Role
from personas.workspaces.deletion import RESTORE_DAYS, RestoreExpired, delete_workspace, restore_workspace
from project.journal import selectors
from project.journal.services import STATUS_KEY
from skills.refresh.watch import list_watched_sources
from tests.factories import PASSWORD, join, make_agent, make_source, make_user, signed_in
from tests.project.journal.rollback import rolled_back_and_ended

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    yield tmp_path / "checkpoints"
    cache.delete(STATUS_KEY)


def delete(client, workspace: Workspace, name: str = ""):
    answer = client.post(f"/w/{workspace.slug}/settings/delete/", {"name": name or workspace.name})
    workspace.refresh_from_db()
    return answer


def restore(client, workspace: Workspace):
    answer = client.post(f"/workspaces/{workspace.pk}/restore/")
    workspace.refresh_from_db()
    return answer


def is_deleted(workspace: Workspace) -> bool:
    return Workspace.objects.filter(pk=workspace.pk, deleted_at__isnull=False).exists()


# --- delete ----------------------------------------------------------------------------------------------


def test_the_page_says_what_happens(as_alice, workspace, alice, key_for):
    key_for(workspace, alice, kind=BOT)
    make_agent(workspace, "pilot")
    page = as_alice.get(f"/w/{workspace.slug}/settings/delete/").content.decode()
    assert "1 API key is revoked" in page
    assert "2 members lose access" in page
    assert f"Owners can restore the workspace within {RESTORE_DAYS} days." in page


def test_keys_invitations_and_pages_end_at_once(as_alice, as_bob, workspace, alice, key_for):
    keys = [key_for(workspace, alice), key_for(workspace, alice, kind=BOT)]
    invite_member(workspace, "carol@example.com", Role.EDITOR, by=Actor.person(alice))
    assert all(key.get("workspace").status_code == 200 for key in keys)
    assert delete(as_alice, workspace).status_code == 302
    assert [key.get("workspace").status_code for key in keys] == [401, 401]
    assert not ApiKey.objects.in_workspace(workspace).filter(revoked_at=None).exists()
    assert Invitation.objects.in_workspace(workspace).get().withdrawn_at is not None
    for client in (as_alice, as_bob):
        assert client.get(f"/w/{workspace.slug}/").status_code == 404
        assert client.post(f"/w/{workspace.slug}/settings/").status_code == 404
    event = AuditEvent.objects.in_workspace(workspace).get(kind="workspace", verb="deleted")
    assert event.actor_label == alice.email


def test_the_name_must_be_typed(as_alice, workspace):
    for name in ("harbor", workspace.name.lower(), "x"):
        answer = delete(as_alice, workspace, name)
        assert (answer.status_code, workspace.deleted_at) == (422, None)
        assert f"Type “{workspace.name}” to delete the workspace." in answer.content.decode()


@pytest.mark.parametrize("role", [Role.ADMIN, Role.EDITOR, Role.REVIEWER, Role.VIEWER])
def test_only_owners_can(workspace, role):
    user = make_user("Carol")
    join(workspace, user, role)
    assert delete(signed_in(user), workspace).status_code == 403
    assert workspace.deleted_at is None


def test_the_owner_must_have_signed_in_recently(client, workspace, alice):
    alice.set_password(PASSWORD)
    alice.save()
    client.force_login(alice)
    answer = delete(client, workspace)
    assert "/reauthenticate/" in answer["Location"]
    assert workspace.deleted_at is None


def test_no_key_is_created_in_a_deleted_workspace(workspace, by_alice):
    delete_workspace(workspace, by=by_alice)
    for kind in ("bot", "admin"):
        with pytest.raises(DomainError, match="was deleted"):
            create_key(workspace, "Late", {}, by=by_alice, kind=kind)


def test_other_workspaces_stay_open(workspace, elsewhere, as_mallory, by_alice):
    delete_workspace(workspace, by=by_alice)
    assert as_mallory.get(f"/w/{elsewhere.slug}/").status_code == 200
    assert as_mallory.post(f"/workspaces/{workspace.pk}/restore/").status_code == 404


def test_sources_are_not_watched_and_no_email_is_sent(workspace, by_alice, settings, tmp_path):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    source = make_source(workspace, tmp_path)
    assert source in list_watched_sources()
    delete_workspace(workspace, by=by_alice)
    assert source not in list_watched_sources()
    now = timezone.now()
    assert not find_members_to_email(now - timedelta(days=1), now + timedelta(minutes=1))


# --- restore ---------------------------------------------------------------------------------------------


def test_an_owner_restores_it_and_keys_stay_revoked(as_alice, as_bob, workspace, alice, key_for):
    key = key_for(workspace, alice)
    delete(as_alice, workspace)
    page = as_alice.get("/").content.decode()
    assert "Deleted workspaces" in page
    assert restore(as_bob, workspace).status_code == 404, "Bob is an editor"
    assert restore(as_alice, workspace).status_code == 302
    assert workspace.deleted_at is None
    assert as_bob.get(f"/w/{workspace.slug}/").status_code == 200
    assert key.get("workspace").status_code == 401
    assert as_alice.get("/").status_code == 302
    assert AuditEvent.objects.in_workspace(workspace).filter(kind="workspace", verb="restored").count() == 1


def test_it_cannot_be_restored_too_late(as_alice, workspace, by_alice):
    delete_workspace(workspace, by=by_alice)
    Workspace.objects.filter(pk=workspace.pk).update(
        deleted_at=timezone.now() - timedelta(days=RESTORE_DAYS, seconds=1)
    )
    assert restore(as_alice, workspace).status_code == 404
    with pytest.raises(RestoreExpired):
        restore_workspace(workspace, by=by_alice)
    assert "Deleted workspaces" not in as_alice.get("/").content.decode()


def test_the_days_to_restore_it_do_not_begin_again(workspace, by_alice):
    first = delete_workspace(workspace, by=by_alice).deleted_at
    with time_machine.travel(timezone.now() + timedelta(days=3)):
        assert delete_workspace(workspace, by=by_alice).deleted_at == first


# --- journal of endings ----------------------------------------------------------------------------------


def test_an_older_backup_does_not_bring_it_back(workspace, by_alice, folder):
    create_key(workspace, "Desk", {}, by=by_alice)
    with rolled_back_and_ended(folder) as apply:
        delete_workspace(workspace, by=by_alice)
    assert not is_deleted(workspace)
    assert apply().counts == {selectors.KEY_REVOKED: 1, selectors.WORKSPACE_DELETED: 1}
    assert is_deleted(workspace)
    assert not apply().counts


def test_a_workspace_that_was_deleted_and_restored_stays_open(workspace, by_alice, folder):
    with rolled_back_and_ended(folder) as apply:
        delete_workspace(workspace, by=by_alice)
        restore_workspace(workspace, by=by_alice)
    assert not apply().counts
    workspace.refresh_from_db()
    assert workspace.deleted_at is None


def test_a_restored_workspace_is_restored_again(workspace, by_alice, folder):
    delete_workspace(workspace, by=by_alice)
    with rolled_back_and_ended(folder) as apply:
        restore_workspace(workspace, by=by_alice)
    assert apply().counts == {selectors.WORKSPACE_RESTORED: 1}
    workspace.refresh_from_db()
    assert workspace.deleted_at is None
