"""The workspace of a key by API: read, rename, and create further workspaces."""

import pytest

from personas.api_keys.format import BOT
from personas.models import AuditEvent, Membership, Workspace
from personas.roles import Role
from tests.factories import join, make_agent, make_user
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


def test_every_key_that_may_read_reads_its_own_workspace(key_for, workspace, alice):
    make_agent(workspace, "pilot")
    for options in ({}, {"kind": BOT}, {"agents": ["pilot"]}):
        answer = key_for(workspace, alice, **options).get("workspace").json()
        assert (answer["slug"], answer["name"]) == (workspace.slug, workspace.name)


def test_an_owner_renames_the_workspace(admin, workspace):
    etag = admin.get("workspace")["ETag"]
    answer = admin.patch("workspace", {"name": "  Haven "}, etag)
    assert (answer.status_code, answer.json()["name"]) == (200, "Haven"), answer.content
    assert answer.json()["slug"] == workspace.slug
    assert admin.patch("workspace", {"name": "Quay"}, etag).status_code == 412
    assert admin.patch("workspace", {"name": "Haven"}, answer["ETag"]).status_code == 200
    assert AuditEvent.objects.in_workspace(workspace).filter(verb="renamed").count() == 1


def test_only_an_owners_key_that_may_manage_renames_or_creates(key_for, workspace, alice):
    other = make_user("Arne")
    join(workspace, other, Role.ADMIN)
    keys = (
        key_for(workspace, other),
        key_for(workspace, alice, verbs=["read", "write"]),
        key_for(workspace, alice, labels=["staging"]),
        key_for(workspace, alice, BOT),
    )
    for key in keys:
        assert key.patch("workspace", {"name": "Haven"}, "*").status_code == 403
        assert key.post("workspaces", {"name": "Quay", "slug": "quay"}).status_code == 403
    assert not Workspace.objects.filter(slug="quay").exists()


def test_a_new_workspace_belongs_to_the_user_of_the_key_and_the_key_stays_outside(admin, alice, workspace):
    answer = admin.post("workspaces", {"name": "Quay", "slug": "quay"})
    assert answer.status_code == 201, answer.content
    new = Workspace.objects.get(pk=answer.json()["id"])
    assert Membership.objects.in_workspace(new).get().user == alice
    assert Membership.objects.in_workspace(new).get().role == Role.OWNER
    assert admin.get("workspace").json()["slug"] == workspace.slug


def test_a_slug_in_use_elsewhere_is_not_revealed(admin, elsewhere, workspace):
    answer = admin.post("workspaces", {"name": "Quay", "slug": elsewhere.slug})
    assert answer.status_code == 201
    assert answer.json()["slug"].startswith(f"{elsewhere.slug}-")
    own = admin.post("workspaces", {"name": "Quay", "slug": workspace.slug})
    assert (own.status_code, own.json()["errors"][0]["pointer"]) == (422, "/slug")
    assert admin.post("workspaces", {"name": "  ", "slug": "quay"}).status_code == 422
