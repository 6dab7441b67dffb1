"""Kinds of keys: bot keys belong to the workspace, admin keys act for a user and are revoked with them."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import combinations
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys import scopes as api_keys_scopes
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import (
    VERBS,
    VERBS_BY_KIND,
    BadScopes,
    find_missing_scope,
    get_key_verbs,
    normalise_scopes,
    resolve_permissions,
)
from personas.api_keys.selectors import get_key_permissions
from personas.api_keys.services import NotKeyOwner, create_key, revoke_key, rotate_key
from personas.errors import DomainError, InvalidInput
from personas.members import services as members_services
from personas.members.services import (
    accept_invitation,
    build_invitation_token,
    change_role,
    invite_member,
    remove_member,
)
from personas.models import ApiKey, AuditEvent, Membership
from personas.roles import ROLES_BY_PERMISSION, Permission, Role, has_permission
from tests.personas.records.test_concurrency import run_concurrently

MANAGING = {Permission.MANAGE_SOURCES, Permission.MANAGE_KEYS, Permission.MANAGE_MEMBERS}


@dataclass(frozen=True)
class FakeKey:
    """The attributes of a key that determine its permissions."""

    kind: str
    scopes: dict[str, Any] = field(default_factory=dict)


# --- verbs ---------------------------------------------------------------------------------------------


def test_a_bots_key_may_never_approve_or_manage_whatever_its_scopes_say():
    assert get_key_verbs({}, BOT) == {"fetch", "render", "read", "write"}
    for scopes in ({}, {"verbs": list(VERBS)}):
        assert get_key_verbs(scopes, BOT) <= {"fetch", "render", "read", "write", "activate"}
        assert find_missing_scope(scopes, "approve")
        assert find_missing_scope(scopes, "manage", kind=BOT)
        assert not find_missing_scope(scopes, "manage", kind=ADMIN)


def test_an_unknown_kind_has_no_permissions():
    assert all(find_missing_scope({}, verb, kind="root") for verb in VERBS)
    assert not any(resolve_permissions(FakeKey("root"), role) for role in Role.values)


@pytest.mark.parametrize("verb", ["approve", "manage", "override"])
def test_bot_keys_cannot_approve_manage_or_override(verb):
    with pytest.raises(BadScopes, match=f"cannot have the “{verb}” permission. Use an admin key"):
        normalise_scopes({"verbs": ["read", verb]}, BOT)
    assert normalise_scopes({"verbs": [verb]}, ADMIN) == {"verbs": [verb]}


# --- permissions ---------------------------------------------------------------------------------------


def test_an_admin_key_may_do_what_its_scopes_and_its_creators_role_both_allow():
    gives = {
        "read": {Permission.READ},
        "write": {Permission.EDIT},
        "approve": {Permission.APPROVE},
        "manage": MANAGING,
        "override": {Permission.OVERRIDE},
    }
    for role in (*Role.values, "", "emperor"):
        for size in range(1, len(VERBS) + 1):
            for verbs in combinations(VERBS, size):
                expected = {one for verb in verbs for one in gives.get(verb, ()) if has_permission(role, one)}
                assert resolve_permissions(FakeKey(ADMIN, {"verbs": list(verbs)}), role) == expected, (
                    role,
                    verbs,
                )


def test_no_admin_key_may_do_more_than_its_creator():
    for role in Role:
        assert resolve_permissions(FakeKey(ADMIN), role) == {
            one for one in Permission if role in ROLES_BY_PERMISSION[one] and one is not Permission.OVERRIDE
        }
    assert resolve_permissions(FakeKey(ADMIN), "") == frozenset()


def test_a_bots_key_reads_regardless_of_its_creator_and_never_edits_records():
    for role in ("", *Role.values):
        assert resolve_permissions(FakeKey(BOT), role) == {Permission.READ}
        assert resolve_permissions(FakeKey(BOT, {"verbs": list(VERBS)}), role) == {Permission.READ}
        assert resolve_permissions(FakeKey(BOT, {"verbs": ["fetch", "write"]}), role) == frozenset()


@pytest.mark.planted
def test_permissions_that_ignore_the_role_are_detected(monkeypatch):
    monkeypatch.setattr(api_keys_scopes, "has_permission", lambda role, permission: True)
    with pytest.raises(AssertionError):
        test_no_admin_key_may_do_more_than_its_creator()


@pytest.mark.planted
def test_bot_scopes_that_add_actions_are_detected(monkeypatch):
    monkeypatch.setitem(VERBS_BY_KIND, BOT, VERBS)
    with pytest.raises(AssertionError):
        test_a_bots_key_may_never_approve_or_manage_whatever_its_scopes_say()


# --- creation and rotation -----------------------------------------------------------------------------


@pytest.fixture
def by_bob(bob):
    return Actor.person(bob)


@pytest.fixture
def bobs_admin_key(workspace, by_bob):
    return create_key(workspace, "Bob's script", {}, by=by_bob, kind=ADMIN)


def test_an_admin_key_has_its_own_prefix_and_its_creator(bobs_admin_key, bob):
    key, secret = bobs_admin_key
    assert secret.startswith("drm_admin_")
    assert (key.prefix, key.kind, key.created_by) == (secret[:16], ADMIN, bob)


@pytest.mark.parametrize("by", [Actor.bot("scout"), Actor("dramatis")])
def test_only_a_person_can_make_an_admin_key(workspace, by):
    with pytest.raises(InvalidInput, match="only a signed-in member") as caught:
        create_key(workspace, "Script", {}, by=by, kind=ADMIN)
    assert "kind" in caught.value.errors
    assert create_key(workspace, "Bot", {}, by=by)[0].kind == BOT


def test_only_a_member_can_make_an_admin_key(workspace, mallory):
    with pytest.raises(InvalidInput, match="acts on behalf of a member"):
        create_key(workspace, "Script", {}, by=Actor.person(mallory), kind=ADMIN)


def test_there_is_no_third_kind(workspace, by_alice):
    with pytest.raises(InvalidInput, match="not a valid kind of key"):
        create_key(workspace, "Root", {}, by=by_alice, kind="root")
    with pytest.raises(InvalidInput, match="cannot have the “manage” permission"):
        create_key(workspace, "Bot", {"verbs": ["manage"]}, by=by_alice)


@pytest.mark.parametrize(
    ("rule", "change"),
    [("admin_key_has_its_maker", {"created_by": None}), ("key_kind_known", {"kind": "root"})],
)
def test_database_constraints_check_kinds_and_creators(bobs_admin_key, workspace, rule, change):
    rows = ApiKey.objects.in_workspace(workspace).filter(pk=bobs_admin_key[0].pk)
    with pytest.raises(DatabaseError, match=rule):
        rows.update(**change)


def test_only_the_creator_can_rotate_an_admin_key(bobs_admin_key, by_alice, by_bob):
    key, ends = bobs_admin_key[0], timezone.now() + timedelta(hours=1)
    for stranger in (by_alice, Actor.bot("scout")):
        with pytest.raises((NotKeyOwner, InvalidInput)):
            rotate_key(key, ends_at=ends, by=stranger)
    new, secret = rotate_key(key, ends_at=ends, by=by_bob)
    assert (new.kind, new.created_by_id, secret[:10]) == (ADMIN, key.created_by_id, "drm_admin_")
    revoke_key(new, by=by_alice)


def test_a_rotation_submitted_twice_creates_one_key(workspace, by_alice):
    key, _ = create_key(workspace, "Desk", {}, by=by_alice)
    ends = timezone.now() + timedelta(days=5)
    rotate_key(key, ends_at=ends, by=by_alice, name="Desk next")
    with pytest.raises(InvalidInput) as caught:
        rotate_key(key, ends_at=ends, by=by_alice, name="Desk next")
    assert "name" in caught.value.errors
    assert ApiKey.objects.in_workspace(workspace).count() == 2


# --- removed members -----------------------------------------------------------------------------------


def membership(workspace, user):
    return Membership.objects.in_workspace(workspace).get(user=user)


def revoked(workspace) -> list[str]:
    rows = AuditEvent.objects.in_workspace(workspace).filter(kind="key", verb="revoked").order_by("pk")
    return [row.object_label for row in rows]


@pytest.mark.usefixtures("bobs_admin_key")
def test_the_admin_keys_of_a_removed_member_end_with_the_membership(workspace, elsewhere, bob, by_alice):
    by_bob = Actor.person(bob)
    bots, _ = create_key(workspace, "Desk", {}, by=by_bob)
    alices, _ = create_key(workspace, "Alice's", {}, by=by_alice, kind=ADMIN)
    Membership(workspace=elsewhere, user=bob, role=Role.EDITOR).save()
    there, _ = create_key(elsewhere, "Bob's elsewhere", {}, by=by_bob, kind=ADMIN)
    remove_member(membership(workspace, bob), by=by_alice)
    for key in (bots, alices, there):
        key.refresh_from_db()
        assert key.revoked_at is None
    assert_no_key_outlives(workspace, bob)
    assert revoked(workspace) == ["Bob's script"]
    event = AuditEvent.objects.in_workspace(workspace).get(kind="key", verb="revoked")
    assert event.actor_label == "alice@example.com"


def assert_no_key_outlives(workspace, person):
    rows = ApiKey.objects.in_workspace(workspace).filter(kind=ADMIN, created_by=person, revoked_at=None)
    assert not rows.exists()


def test_a_key_stays_revoked_when_its_creator_rejoins(workspace, bob, bobs_admin_key, by_alice):
    remove_member(membership(workspace, bob), by=by_alice)
    accept_invitation(
        build_invitation_token(invite_member(workspace, bob.email, Role.OWNER, by=by_alice)), bob
    )
    bobs_admin_key[0].refresh_from_db()
    assert bobs_admin_key[0].revoked_at is not None


def test_a_member_who_cannot_be_removed_keeps_their_keys(workspace, alice, by_alice):
    key, _ = create_key(workspace, "Alice's", {}, by=by_alice, kind=ADMIN)
    with pytest.raises(DomainError, match="needs an owner"):
        remove_member(membership(workspace, alice), by=by_alice)
    key.refresh_from_db()
    assert key.revoked_at is None


def test_a_lowered_role_applies_to_admin_keys_at_once(workspace, bob, bobs_admin_key, by_alice):
    key, _ = bobs_admin_key
    assert get_key_permissions(key) == {Permission.READ, Permission.EDIT}
    change_role(membership(workspace, bob), Role.VIEWER, by=by_alice)
    assert get_key_permissions(key) == {Permission.READ}
    bob.is_active = False
    bob.save()
    assert get_key_permissions(key) == frozenset()


@pytest.mark.planted
@pytest.mark.usefixtures("bobs_admin_key")
def test_a_removal_that_does_not_revoke_keys_is_detected(workspace, elsewhere, bob, by_alice, monkeypatch):
    monkeypatch.setattr(members_services, "revoke_member_keys", lambda *args, **kwargs: [])
    with pytest.raises(AssertionError):
        test_the_admin_keys_of_a_removed_member_end_with_the_membership(workspace, elsewhere, bob, by_alice)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_member_removed_while_creating_keys_keeps_none(workspace, bob, by_bob, by_alice):
    """A concurrent key is either created before and revoked, or rejected; and there is no deadlock."""
    for turn in range(8):
        old, _ = create_key(workspace, f"Old {turn}.", {}, by=by_bob, kind=ADMIN)
        ends = timezone.now() + timedelta(hours=1)
        results = run_concurrently(
            partial(remove_member, membership(workspace, bob), by=by_alice),
            partial(create_key, workspace, f"New {turn}.", {}, by=by_bob, kind=ADMIN),
            partial(revoke_key, old, by=by_alice),
            partial(rotate_key, old, ends_at=ends, by=by_bob),
        )
        assert results[0] is None
        assert_no_key_outlives(workspace, bob)
        Membership(workspace=workspace, user=bob, role=Role.ADMIN).save()
