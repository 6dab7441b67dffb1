"""What ended is in the journal after the next run of the job, without tenants' text."""

import os
from datetime import timedelta

import pytest
import time_machine
from django.core.cache import cache
from django.utils import timezone

from personas.accounts.models import SecurityEventKind
from personas.accounts.services import record_security_event
from personas.actors import Actor
from personas.api_keys.services import create_key, revoke_key, rotate_key
from personas.audit.services import build_audit_event
from personas.members.services import change_role, invite_member, remove_member, withdraw_invitation
from personas.models import Membership
from personas.roles import Role
from project.celery import app
from project.doctor.record import check_journal
from project.journal import selectors
from project.journal.files import JOURNAL_FILE, JournalError, read_journal
from project.journal.services import STATUS_KEY, record_endings
from project.tasks import record_endings_job
from prompts.evidence.erasure.services import erase_record
from tests.factories import make_agent, make_channel, make_memory
from tests.prompts.evidence.erasure.test_erasure import SECRET

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    cache.delete(STATUS_KEY)
    yield tmp_path / "checkpoints"
    cache.delete(STATUS_KEY)


def list_recorded(folder):
    journal = read_journal(folder)
    assert journal is not None
    return journal.endings


def list_kinds(folder):
    return [ending["kind"] for ending in list_recorded(folder)]


def member_of(workspace, user):
    return Membership.objects.in_workspace(workspace).get(user=user)


def end_everything(workspace, alice, bob) -> str:
    """End one thing of each kind; return the secret of the revoked key."""
    by = Actor.person(alice)
    key, secret = create_key(workspace, "Desk", {}, by=by)
    revoke_key(key, by=by)
    rotated, _ = create_key(workspace, "Shelf", {}, by=by)
    rotate_key(rotated, ends_at=timezone.now() + timedelta(hours=1), by=by)
    withdraw_invitation(invite_member(workspace, "carol@example.com", Role.EDITOR, by=by), by=by)
    change_role(member_of(workspace, bob), Role.VIEWER, by=by)
    remove_member(member_of(workspace, bob), by=by)
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    erase_record(make_memory(workspace, SECRET), reason="She asked for it.", by=by)
    record_security_event(bob, SecurityEventKind.PASSWORD_CHANGED)
    return secret


def test_each_ending_is_recorded_once(workspace, alice, bob, folder):
    end_everything(workspace, alice, bob)
    record_endings_job()
    expected = {
        selectors.KEY_REVOKED,
        selectors.KEY_SHORTENED,
        selectors.INVITATION_WITHDRAWN,
        selectors.ROLE_CHANGED,
        selectors.MEMBER_REMOVED,
        selectors.ERASED,
        selectors.ACCOUNT_CHANGED,
    }
    assert set(list_kinds(folder)) == expected
    assert len(list_kinds(folder)) == len(expected)
    assert record_endings() == 0
    [erased] = [one for one in list_recorded(folder) if one["kind"] == selectors.ERASED]
    assert (erased["reason"], erased["author_label"]) == ("She asked for it.", alice.email)


@pytest.mark.slow
def test_the_journal_has_no_text_no_address_and_no_secret(workspace, alice, bob, folder):
    secret = end_everything(workspace, alice, bob)
    record_endings()
    content = (folder / JOURNAL_FILE).read_text()
    for text in ("flowerpot", secret, secret[12:], bob.email, "carol@example.com", "Desk"):
        assert text not in content


@pytest.mark.slow
def test_the_job_catches_up_after_an_outage(workspace, alice, bob, folder):
    record_endings()
    with time_machine.travel(timezone.now() + timedelta(days=3), tick=False):
        end_everything(workspace, alice, bob)
    with time_machine.travel(timezone.now() + timedelta(days=9), tick=False):
        assert record_endings() == 7
        assert record_endings() == 0


def test_an_ending_that_was_committed_late_is_recorded(workspace, alice, folder):
    """Its time lies before the last run, because its transaction took long."""
    key, _ = create_key(workspace, "Desk", {}, by=Actor.person(alice))
    with time_machine.travel(timezone.now() + timedelta(minutes=20)):
        record_endings()
    revoke_key(key, by=Actor.person(alice))
    assert record_endings() == 1


def test_the_job_runs_every_minute_in_the_queue_of_the_clock():
    [entry] = [one for one in app.conf.beat_schedule.values() if one["task"] == record_endings_job.name]
    assert entry["schedule"] <= 60
    assert record_endings_job.name not in app.conf.task_routes


def test_a_damaged_audit_event_does_not_hide_other_endings(workspace, elsewhere, alice, bob, folder):
    """A change to an unknown role counts as one to the lowest."""
    member, by = member_of(workspace, bob), Actor.person(alice)
    event = build_audit_event(workspace, "role changed", "member", member.pk, bob.email, by=by)
    event.after = [1]
    event.save(force_insert=True)
    key, _ = create_key(elsewhere, "Desk", {}, by=by)
    revoke_key(key, by=by)
    record_endings()
    roles = {one["kind"]: one.get("role") for one in list_recorded(folder)}
    assert roles == {selectors.KEY_REVOKED: None, selectors.ROLE_CHANGED: Role.VIEWER}


@pytest.mark.slow
def test_a_kind_that_cannot_be_read_does_not_hide_others_and_is_reported(
    workspace, alice, bob, folder, monkeypatch
):
    record_endings()
    before = read_journal(folder)

    def fail(since):
        raise ValueError("damaged")

    monkeypatch.setattr(selectors, "ENDING_SOURCES", (fail, *selectors.ENDING_SOURCES))
    end_everything(workspace, alice, bob)
    assert record_endings() == 7
    after = read_journal(folder)
    assert before is not None
    assert after is not None
    assert after.head.through == before.head.through
    with time_machine.travel(timezone.now() + timedelta(minutes=6)):
        record_endings()
        [finding] = check_journal()
    assert finding.state == "fail"
    assert "6 minutes old" in finding.message


# --- doctor --------------------------------------------------------------------------------------------


def test_the_doctor_reports_a_journal_that_is_up_to_date_late_or_missing(folder):
    assert [one.state for one in check_journal()] == ["fail"]
    record_endings()
    assert [one.state for one in check_journal()] == ["ok"]
    with time_machine.travel(timezone.now() + timedelta(minutes=6)):
        [finding] = check_journal()
    assert finding.state == "fail"
    assert "minutes old" in finding.message
    assert "clock" in finding.advice


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_reported(folder):
    folder.mkdir(mode=0o500)
    with pytest.raises(OSError, match="ermission"):
        record_endings()
    [finding] = check_journal()
    assert "cannot be written" in finding.message


def test_a_folder_that_cannot_be_written_is_reported(folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file in its place")
    with pytest.raises(OSError):  # noqa: PT011  # the reason depends on the system
        record_endings()
    [finding] = check_journal()
    assert finding.state == "fail"
    assert "cannot be written" in finding.message


@pytest.mark.slow
def test_a_changed_journal_is_reported(workspace, alice, bob, folder):
    end_everything(workspace, alice, bob)
    record_endings()
    content = (folder / JOURNAL_FILE).read_bytes()
    (folder / JOURNAL_FILE).write_bytes(content.replace(b"She asked", b"He asked!"))
    [finding] = check_journal()
    assert "damaged" in finding.message
    with pytest.raises(JournalError):
        record_endings()
    [finding] = check_journal()
    assert "cannot be written" in finding.message
