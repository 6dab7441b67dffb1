"""A database that was brought back: what ended meanwhile ends again, and nothing else does."""

from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.core.cache import cache
from django.utils import timezone

from personas.accounts.models import SecurityEventKind
from personas.accounts.operator_audit import audit_account_change
from personas.accounts.services import record_security_event
from personas.actors import Actor
from personas.api_keys.services import create_key, revoke_key, rotate_key
from personas.members.services import (
    change_role,
    invite_member,
    remove_member,
    transfer_ownership,
    withdraw_invitation,
)
from personas.models import ApiKey, Erasure, Invitation, Membership, User
from personas.roles import Role
from project.journal import selectors
from project.journal.apply import apply_endings
from project.journal.files import read_journal
from project.journal.services import STATUS_KEY, record_endings
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.integrity.verify import verify_workspace
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.versions.selectors import get_version_text, has_erased_content
from skills.models import AllowedFolder
from skills.sources.allowed_folders import allow_folder, withdraw_folder
from tests.factories import join, make_agent, make_channel, make_memory, make_user
from tests.personas.accounts.sign_in import give_password, give_totp
from tests.project.journal.rollback import apply_journal, rolled_back_and_ended
from tests.prompts.evidence.erasure.guesses import find_columns_with
from tests.prompts.evidence.erasure.test_erasure import SECRET, prompt_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    yield tmp_path / "checkpoints"
    cache.delete(STATUS_KEY)


def role_of(workspace, user) -> str | None:
    return Membership.objects.in_workspace(workspace).filter(user=user).values_list("role", flat=True).first()


def member_of(workspace, user) -> Membership:
    return Membership.objects.in_workspace(workspace).get(user=user)


# --- keys, invitations, grants -------------------------------------------------------------------------


def test_a_revoked_key_is_revoked_again_at_its_time(workspace, by_alice, folder):
    key, _ = create_key(workspace, "Desk", {}, by=by_alice)
    other, _ = create_key(workspace, "Shelf", {}, by=by_alice)
    with rolled_back_and_ended(folder) as apply:
        revoked_at = revoke_key(key, by=by_alice).revoked_at
    key.refresh_from_db()
    assert key.revoked_at is None
    assert apply().counts == {selectors.KEY_REVOKED: 1}
    key.refresh_from_db()
    other.refresh_from_db()
    assert (key.revoked_at, other.revoked_at) == (revoked_at, None)
    assert not apply().counts


def test_a_rotated_key_ends_when_it_should(workspace, by_alice, folder):
    key, _ = create_key(workspace, "Desk", {}, by=by_alice)
    ends_at = timezone.now() + timedelta(hours=2)
    with rolled_back_and_ended(folder) as apply:
        rotate_key(key, ends_at=ends_at, by=by_alice)
    apply()
    key.refresh_from_db()
    assert (key.expires_at, key.revoked_at) == (ends_at, None)
    assert ApiKey.objects.in_workspace(workspace).count() == 1


def test_a_withdrawn_invitation_stays_withdrawn(workspace, by_alice, folder):
    invitation = invite_member(workspace, "carol@example.com", Role.EDITOR, by=by_alice)
    with rolled_back_and_ended(folder) as apply:
        withdraw_invitation(invitation, by=by_alice)
    apply()
    assert Invitation.objects.in_workspace(workspace).get().withdrawn_at is not None


def test_a_withdrawn_grant_stays_withdrawn(workspace, by_alice, folder, settings, tmp_path):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    grant = allow_folder(workspace, str(tmp_path), by=by_alice)
    with rolled_back_and_ended(folder) as apply:
        withdraw_folder(grant, by=by_alice)
    assert apply().counts == {selectors.FOLDER_WITHDRAWN: 1}
    assert not AllowedFolder.objects.in_workspace(workspace).exists()


# --- members -------------------------------------------------------------------------------------------


def test_a_removed_member_is_removed_again_with_the_keys(workspace, bob, by_alice, folder):
    key, _ = create_key(workspace, "Bob's", {}, by=Actor.person(bob), kind="admin")
    with rolled_back_and_ended(folder) as apply:
        remove_member(member_of(workspace, bob), by=by_alice)
    assert role_of(workspace, bob) == Role.EDITOR
    apply()
    key.refresh_from_db()
    assert role_of(workspace, bob) is None
    assert key.revoked_at is not None


def test_a_lowered_role_is_lowered_and_a_raised_one_is_not_raised(workspace, bob, by_alice, folder):
    carol = make_user("Carol")
    join(workspace, carol, Role.VIEWER)
    with rolled_back_and_ended(folder) as apply:
        change_role(member_of(workspace, bob), Role.VIEWER, by=by_alice)
        change_role(member_of(workspace, carol), Role.ADMIN, by=by_alice)
    assert apply().counts == {selectors.ROLE_CHANGED: 1}
    assert (role_of(workspace, bob), role_of(workspace, carol)) == (Role.VIEWER, Role.VIEWER)


def test_a_workspace_whose_owner_left_gets_the_new_owner(workspace, alice, bob, by_alice, folder):
    with rolled_back_and_ended(folder) as apply:
        transfer_ownership(member_of(workspace, alice), member_of(workspace, bob), by=by_alice)
        remove_member(member_of(workspace, alice), by=Actor.person(bob))
    assert not apply().notes
    assert (role_of(workspace, alice), role_of(workspace, bob)) == (None, Role.OWNER)


def test_the_last_owner_stays_and_is_reported(workspace, alice, by_alice, folder):
    """The new owner joined after the backup."""
    with rolled_back_and_ended(folder) as apply:
        join(workspace, make_user("Carol"), Role.OWNER)
        remove_member(member_of(workspace, alice), by=by_alice)
    [note] = apply().notes
    assert f"User {alice.pk} is still an owner of {workspace.slug}" in note
    assert role_of(workspace, alice) == Role.OWNER


def test_a_member_who_came_back_later_is_another(workspace, bob, by_alice, folder):
    """After a restore, ids are given again: an older ending must not hit the new row."""
    with rolled_back_and_ended(folder) as apply:
        remove_member(member_of(workspace, bob), by=by_alice)
    Membership.objects.in_workspace(workspace).filter(user=bob).update(
        joined_at=timezone.now() + timedelta(minutes=1)
    )
    assert not apply().counts
    assert role_of(workspace, bob) == Role.EDITOR


# --- accounts ------------------------------------------------------------------------------------------


def test_an_old_password_does_not_open_the_account(bob, folder):
    give_password(bob, "the old password")
    with rolled_back_and_ended(folder) as apply:
        give_password(bob, "the new password")
        record_security_event(bob, SecurityEventKind.PASSWORD_CHANGED)
    assert User.objects.get(pk=bob.pk).check_password("the old password")
    assert apply().counts == {selectors.ACCOUNT_CHANGED: 1}
    assert not User.objects.get(pk=bob.pk).has_usable_password()
    assert bob.security_events.get().detail.startswith("restored from a backup: password removed")


def test_a_password_that_was_changed_before_the_backup_is_kept(bob, folder):
    """The journal may be up to a minute late: then the backup contains the change already."""
    give_password(bob)
    record_security_event(bob, SecurityEventKind.PASSWORD_CHANGED)
    record_endings()
    assert not apply_journal(folder).counts
    assert User.objects.get(pk=bob.pk).has_usable_password()


def test_a_removed_second_factor_does_not_come_back(bob, folder):
    give_password(bob)
    give_totp(bob)
    with rolled_back_and_ended(folder) as apply:
        Authenticator.objects.filter(user=bob).delete()
        record_security_event(bob, SecurityEventKind.SECOND_FACTOR_REMOVED)
    apply()
    assert not Authenticator.objects.filter(user=bob).exists()
    # The account is not left to the password alone.
    assert not User.objects.get(pk=bob.pk).has_usable_password()


def test_used_recovery_codes_do_not_work_again(bob, folder):
    give_password(bob)
    give_totp(bob)
    RecoveryCodes.activate(bob)
    with rolled_back_and_ended(folder) as apply:
        record_security_event(bob, SecurityEventKind.RECOVERY_CODE_USED)
    apply()
    assert [one.type for one in Authenticator.objects.filter(user=bob)] == [Authenticator.Type.TOTP]
    assert User.objects.get(pk=bob.pk).has_usable_password()


def test_a_removed_address_does_not_come_back(bob, folder):
    EmailAddress.objects.create(user=bob, email="bob@second.example", verified=True)
    with rolled_back_and_ended(folder) as apply:
        EmailAddress.objects.get(email=bob.email).delete()
        EmailAddress.objects.get(user=bob).set_as_primary()
        record_security_event(bob, SecurityEventKind.EMAIL_REMOVED)
    assert not apply().notes
    assert User.objects.get(pk=bob.pk).email == "bob@second.example"
    assert EmailAddress.objects.get(user=bob).primary


def test_an_account_whose_new_address_is_unknown_is_disabled(bob, folder):
    with rolled_back_and_ended(folder) as apply:
        EmailAddress.objects.filter(user=bob).delete()
        EmailAddress.objects.create(user=bob, email="bob@new.example", verified=True, primary=True)
        record_security_event(bob, SecurityEventKind.EMAIL_CHANGED)
    [note] = apply().notes
    assert f"User {bob.pk}" in note
    assert not User.objects.get(pk=bob.pk).is_active


def test_a_disabled_account_and_removed_operator_rights_stay_so(bob, folder):
    User.objects.filter(pk=bob.pk).update(is_superuser=True)
    with rolled_back_and_ended(folder) as apply:
        User.objects.filter(pk=bob.pk).update(is_superuser=False, is_active=False)
        audit_account_change(bob, "is_active", by=Actor(label="operator Otto"))
    apply()
    user = User.objects.get(pk=bob.pk)
    assert (user.is_superuser, user.is_active) == (False, False)


# --- erasures ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_erasure_is_repeated_with_its_reason_person_and_time(workspace, alice, by_alice, folder):
    pilot = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    memory = make_memory(workspace, SECRET)
    rebuild_agents(workspace, [pilot.pk])
    version = prompt_of(pilot).latest
    with rolled_back_and_ended(folder) as apply:
        erased_at = erase_record(memory, reason="She asked for it.", by=by_alice).at
    assert "flowerpot" in get_version_text(prompt_of(pilot).latest)
    applied = apply()
    assert applied.counts == {selectors.ERASED: 1}
    assert find_columns_with("third flowerpot") == []
    assert has_erased_content(version)
    assert "flowerpot" not in get_version_text(prompt_of(pilot).latest)
    tombstone = Erasure.objects.in_workspace(workspace).get()
    assert (tombstone.reason, tombstone.person, tombstone.author_label, tombstone.at) == (
        "She asked for it.",
        alice,
        alice.email,
        erased_at,
    )
    assert verify_workspace(workspace).first is None
    assert not apply().counts


@pytest.mark.slow
def test_an_erasure_of_many_prompts_is_finished_at_once(workspace, by_alice, folder, settings):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    pilot = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    memory = make_memory(workspace, SECRET)
    rebuild_agents(workspace, [pilot.pk])
    with rolled_back_and_ended(folder) as apply:
        erase_record(memory, reason="She asked for it.", by=by_alice)
    apply()
    assert Erasure.objects.in_workspace(workspace).get().rebuilding_since is None
    assert "flowerpot" not in get_version_text(prompt_of(pilot).latest)


def test_an_erasure_of_a_record_that_the_backup_lacks_changes_nothing(workspace, by_alice, folder):
    with rolled_back_and_ended(folder) as apply:
        erase_record(make_memory(workspace, SECRET), reason="She asked for it.", by=by_alice)
    assert not apply().counts


def test_an_unknown_kind_of_ending_is_reported(folder):
    record_endings()
    assert read_journal(folder) is not None
    [note] = apply_endings(
        [{"kind": "moon_set", "workspace": 1, "id": 1, "at": "2026-05-04T12:00:00.000000Z"}]
    ).notes
    assert "moon_set" in note
