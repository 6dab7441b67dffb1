"""Notifications: who gets them, how they are counted, read, chosen and sent by email."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from personas.actors import Actor
from personas.events.services import record_event
from personas.members.services import remove_member
from personas.memories.services import approve_memory, create_memory, reject_memory
from personas.models import (
    Event,
    Membership,
    Notification,
    NotificationKind,
    NotificationQueue,
    Workspace,
)
from personas.notifications.descriptions import describe_notifications
from personas.notifications.emails import EMAIL_DELAY, send_notification_emails
from personas.notifications.rules import NOTIFICATION_RULES
from personas.notifications.selectors import find_workspaces_to_notify
from personas.notifications.services import (
    create_all_notifications,
    create_notifications,
    delete_notifications_before,
    mark_as_read,
    save_preferences,
)
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import AgentPrompt
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.releases.services import approve_release, reject_release, request_release, run_release
from tests.factories import (
    join,
    make_agent,
    make_channel,
    make_memory,
    make_soul,
    make_source,
    make_user,
    refreshed,
)

pytestmark = pytest.mark.django_db

DATA: dict[str, dict[str, object]] = {
    "context_file.waiting": {
        "file_id": 1,
        "source_id": 1,
        "kind": "context",
        "status": "new",
        "digest": None,
    },
    "build.failed": {"agent": "careful", "channel": "deck"},
    "key.expiring": {
        "key_id": 1,
        "kind": "bot",
        "expires_at": "2030-01-01T00:00:00+00:00",
        "new_key_id": None,
    },
    "webhook.disabled": {"endpoint_id": 1, "status": "gone"},
    "chain.broken": {"verification_id": 1, "count": 2},
    "agent.review_lifted": {"agent": "pilot"},
    "workspace.review_lifted": {"default_release_policy": "automatic"},
}


@pytest.fixture
def people(workspace: Workspace) -> dict[str, Membership]:
    """Alice the owner, Bob the editor, and a member of each other role."""
    for role in (Role.ADMIN, Role.REVIEWER, Role.VIEWER):
        join(workspace, make_user(str(role.label)), role)
    create_all_notifications()
    rows = Membership.objects.in_workspace(workspace).select_related("user", "workspace")
    return {str(row.user): row for row in rows}


@pytest.fixture
def prompts(workspace, bob):
    """Prompts of a reviewed agent whose soul Bob wrote."""
    soul = make_soul(workspace, text="Be brave.")
    agent = make_agent(
        workspace,
        "careful",
        soul=soul,
        channels=[make_channel(workspace, "deck")],
        release_policy="reviewed",
    )
    rebuild_agents(workspace, [agent.pk])
    return list(AgentPrompt.objects.in_workspace(workspace).select_related("latest"))


def list_notified(workspace: Workspace) -> dict[str, list[str]]:
    """Return the types of events that each person was notified of."""
    create_all_notifications()
    notified: dict[str, list[str]] = {}
    rows = Notification.objects.in_workspace(workspace).select_related("member__user", "event")
    for row in rows.order_by("at", "pk"):
        notified.setdefault(str(row.member.user), []).append(row.event.type)
    return notified


def get_unread(workspace: Workspace, name: str) -> int:
    return Membership.objects.in_workspace(workspace).get(user__name=name).unread_count


# --- who gets them ---------------------------------------------------------------------------------------


def test_reviewers_are_notified_of_a_request_and_the_requester_is_not(workspace, people, prompts, alice, bob):
    request_release(workspace, prompts, message="First words", by=Actor.person(bob))
    notified = list_notified(workspace)
    assert set(notified) == {"Alice", "Admin", "Reviewer"}
    assert notified["Reviewer"] == ["release.requested"]


def test_an_admin_who_requests_a_release_is_not_notified_of_it(workspace, people, prompts, alice):
    request_release(workspace, prompts, message="First words", by=Actor.person(alice))
    assert set(list_notified(workspace)) == {"Admin", "Reviewer"}


def test_the_requester_learns_of_every_decision(workspace, people, prompts, alice, bob):
    release = request_release(workspace, prompts, message="First words", by=Actor.person(bob))
    approve_release(release, by=Actor.person(alice))
    run_release(release, by=Actor.person(alice))
    assert list_notified(workspace)["Bob"] == ["release.approved", "release.released"]


def test_the_author_of_a_change_learns_of_a_rejection(workspace, people, bob, alice):
    soul = make_soul(workspace, text="Be brave.")
    values = {"soul": soul, "channels": [make_channel(workspace, "deck")], "release_policy": "reviewed"}
    agent = make_agent(workspace, "careful", **values)
    edit_record(soul, {"text": "Be calm."}, expected=1, by=Actor.person(bob))
    rebuild_agents(workspace, [agent.pk])
    prompts = list(AgentPrompt.objects.in_workspace(workspace).select_related("latest"))
    admin = Actor.person(people["Admin"].user)
    release = request_release(workspace, prompts, message="Calm", by=admin)
    reject_release(release, reason="Too calm", by=Actor.person(alice))
    notified = list_notified(workspace)
    assert notified["Bob"] == ["release.rejected"]
    assert "release.rejected" in notified["Admin"]
    assert notified.get("Alice") == ["release.requested"]


def test_reviewers_are_notified_of_a_proposed_memory(workspace, people, agent):
    create_memory(workspace, {"text": "Likes tea.", "agent": agent}, by=Actor.bot("pilot"))
    assert set(list_notified(workspace)) == {"Alice", "Admin", "Reviewer"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("context_file.waiting", {"Alice", "Admin", "Bob"}),
        ("build.failed", {"Alice", "Admin"}),
        ("key.expiring", {"Alice", "Admin"}),
        ("webhook.disabled", {"Alice", "Admin"}),
        ("chain.broken", {"Alice", "Admin"}),
        ("agent.review_lifted", {"Alice", "Admin", "Reviewer"}),
        ("workspace.review_lifted", {"Alice", "Admin", "Reviewer"}),
    ],
)
def test_events_without_a_person_go_to_those_who_can_act(workspace, people, name, expected):
    record_event(workspace, name, DATA[name])
    assert set(list_notified(workspace)) == expected


def test_other_events_notify_nobody(workspace, people):
    make_memory(workspace)
    make_soul(workspace)
    assert list_notified(workspace) == {}


def test_events_of_another_workspace_notify_nobody_here(workspace, elsewhere, people):
    record_event(elsewhere, "build.failed", DATA["build.failed"])
    assert list_notified(workspace) == {}
    assert set(list_notified(elsewhere)) == {"Mallory"}


def test_the_rule_about_the_person_who_caused_it_is_needed(workspace, people, prompts, alice, monkeypatch):
    """The planted fault: without the check, Alice is notified of her own request."""
    request_release(workspace, prompts, message="First words", by=Actor.person(alice))
    Event.objects.in_workspace(workspace).filter(type="release.requested").update(actor=None)
    assert "Alice" in list_notified(workspace)


def test_old_events_notify_nobody(workspace, people):
    record_event(workspace, "build.failed", DATA["build.failed"])
    rows = Event.objects.in_workspace(workspace)
    rows.update(at=timezone.now() - timedelta(days=2))
    assert list_notified(workspace) == {}


def test_a_workspace_without_a_queue_begins_with_the_events_of_the_last_day(workspace, people):
    NotificationQueue.objects.in_workspace(workspace).delete()
    Event.objects.in_workspace(workspace).update(at=timezone.now() - timedelta(days=2))
    record_event(workspace, "build.failed", DATA["build.failed"])
    assert create_notifications(workspace.pk) == 1
    assert set(list_notified(workspace)) == {"Alice", "Admin"}


def test_a_removed_member_has_no_notifications(workspace, people, by_alice):
    record_event(workspace, "build.failed", DATA["build.failed"])
    list_notified(workspace)
    remove_member(people["Admin"], by=by_alice)
    assert set(list_notified(workspace)) == {"Alice"}


# --- counting and reading --------------------------------------------------------------------------------


def test_memories_are_counted_in_one_unread_notification(workspace, people, agent):
    for number in range(3):
        create_memory(workspace, {"text": f"Fact {number}", "agent": agent}, by=Actor.bot("pilot"))
    create_all_notifications()
    create_memory(workspace, {"text": "Fact 4", "agent": agent}, by=Actor.bot("pilot"))
    create_all_notifications()
    [row] = Notification.objects.in_workspace(workspace).filter(member=people["Reviewer"])
    assert row.count == 4
    assert get_unread(workspace, "Reviewer") == 1
    mark_as_read(people["Reviewer"])
    create_memory(workspace, {"text": "Fact 5", "agent": agent}, by=Actor.bot("pilot"))
    create_all_notifications()
    counts = Notification.objects.in_workspace(workspace).filter(member=people["Reviewer"]).order_by("pk")
    assert [row.count for row in counts] == [4, 1]


def list_titles(workspace: Workspace, member: Membership, **filters: object) -> list[str]:
    rows = Notification.objects.in_workspace(workspace).filter(member=member, **filters)
    return [
        text.title for text in describe_notifications(workspace, list(rows.select_related("event__actor")))
    ]


def test_a_notification_counts_what_is_open_and_ends_with_the_last(workspace, people, agent, by_alice):
    memories = [
        create_memory(workspace, {"text": f"Fact {number}", "agent": agent}, by=Actor.bot("pilot"))
        for number in range(3)
    ]
    create_all_notifications()
    reviewer = people["Reviewer"]
    assert list_titles(workspace, reviewer) == ["3 memories need approval"]
    approve_memory(memories[0], by=by_alice)
    reject_memory(memories[1], by=by_alice)
    create_all_notifications()
    assert list_titles(workspace, reviewer) == ["1 memory needs approval"]
    assert get_unread(workspace, "Reviewer") == 1
    approve_memory(memories[2], by=by_alice)
    create_all_notifications()
    assert get_unread(workspace, "Reviewer") == 0
    assert list_titles(workspace, reviewer, read_at=None) == []
    assert list_titles(workspace, reviewer) == ["3 memories were proposed"]


def test_files_that_were_settled_do_not_count(workspace, people, tmp_path, settings):
    """The event counts a change of the file; the title counts what is in the inbox."""
    record_event(workspace.pk, "context_file.waiting", DATA["context_file.waiting"])
    record_event(workspace.pk, "context_file.waiting", DATA["context_file.waiting"])
    create_all_notifications()
    assert list_titles(workspace, people["Bob"]) == ["2 context files changed"]
    settings.DRAMATIS_SOURCE_ROOTS = [str(tmp_path)]
    (tmp_path / "AGENTS.md").write_text("# Rules\n\nBe kind.\n", encoding="utf-8")
    refreshed(make_source(workspace, tmp_path, approval="manual"))
    create_all_notifications()
    assert list_titles(workspace, people["Bob"]) == ["1 context file needs review"]


def test_a_second_run_creates_nothing_more(workspace, people):
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    before = list_notified(workspace)
    NotificationQueue.objects.in_workspace(workspace).update(position=0)
    assert find_workspaces_to_notify() == [workspace.pk]
    create_all_notifications()
    assert list_notified(workspace) == before
    assert get_unread(workspace, "Alice") == 1


def test_members_read_only_their_own(workspace, people, as_bob, as_alice):
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    create_all_notifications()
    [row] = Notification.objects.in_workspace(workspace).filter(member=people["Alice"])
    assert as_bob.post(f"/w/harbour/notifications/{row.pk}/read/").status_code == 404
    assert as_bob.post(f"/w/harbour/notifications/{row.pk}/open/").status_code == 404
    assert get_unread(workspace, "Alice") == 1
    response = as_alice.post(f"/w/harbour/notifications/{row.pk}/open/")
    assert response.url == "/w/harbour/keys/1/"
    assert get_unread(workspace, "Alice") == 0
    assert get_unread(workspace, "Admin") == 1


def test_old_notifications_are_deleted_and_no_longer_counted(workspace, people):
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    create_all_notifications()
    assert delete_notifications_before(timezone.now() - timedelta(days=1)) == 0
    assert delete_notifications_before(timezone.now() + timedelta(days=1)) == 2
    assert get_unread(workspace, "Alice") == 0


def test_a_decision_ends_the_unread_requests_for_a_review(workspace, people, prompts, alice, bob):
    release = request_release(workspace, prompts, message="First words", by=Actor.person(bob))
    create_all_notifications()
    assert get_unread(workspace, "Reviewer") == 1
    approve_release(release, by=Actor.person(alice))
    create_all_notifications()
    assert get_unread(workspace, "Reviewer") == 0
    assert get_unread(workspace, "Bob") == 1


# --- pages -----------------------------------------------------------------------------------------------


def test_the_page_lists_unread_and_all_and_marks_all_as_read(workspace, people, prompts, bob, as_alice):
    request_release(workspace, prompts, message="First words", by=Actor.person(bob))
    for name, data in DATA.items():
        record_event(workspace, name, data)
    create_all_notifications()
    page = as_alice.get("/w/harbour/notifications/").content.decode()
    assert "Bob requested a review of release 1" in page
    assert "First words" in page
    assert "Build failed for careful on deck" in page
    assert as_alice.get("/w/harbour/notifications/bell/?seen=8").status_code == 204
    response = as_alice.get("/w/harbour/notifications/bell/?seen=0")
    assert response.json() == {"count": 8, "text": "8 unread notifications"}
    response = as_alice.post("/w/harbour/notifications/read/", follow=True)
    assert "8 notifications marked as read." in response.content.decode()
    assert "No unread notifications" in response.content.decode()
    everything = as_alice.get("/w/harbour/notifications/?show=all").content.decode()
    assert "Bob requested a review of release 1" in everything


def test_every_link_of_a_notification_leads_to_a_page(workspace, people, prompts, bob, as_alice):
    request_release(workspace, prompts, message="First words", by=Actor.person(bob))
    for name in ("context_file.waiting", "build.failed", "chain.broken"):
        record_event(workspace, name, DATA[name])
    create_memory(workspace, {"text": "Likes tea."}, by=Actor.bot("pilot"))
    create_all_notifications()
    rows = list(Notification.objects.in_workspace(workspace).filter(member=people["Alice"]))
    assert len(rows) == 5
    for row in rows:
        response = as_alice.post(f"/w/harbour/notifications/{row.pk}/open/", follow=True)
        assert response.status_code == 200, row.kind


def test_the_list_is_returned_again_only_after_a_change(workspace, people, as_alice):
    context = as_alice.get("/w/harbour/notifications/").context
    url = f"/w/harbour/notifications/live/?{context['poll']}"
    assert as_alice.get(url).status_code == 204
    record_event(workspace, "build.failed", DATA["build.failed"])
    create_all_notifications()
    assert as_alice.get(url).status_code == 200


def test_the_bell_is_on_every_page_without_a_query_of_its_own(workspace, people, as_bob):
    Membership.objects.in_workspace(workspace).filter(user__name="Bob").update(unread_count=7)
    page = as_bob.get("/w/harbour/agents/").content.decode()
    assert 'data-bell="/w/harbour/notifications/bell/" data-count="7"' in page
    assert "7 unread notifications" in page


# --- preferences -----------------------------------------------------------------------------------------


def test_a_kind_that_is_off_is_not_created(workspace, people):
    save_preferences(people["Alice"], {NotificationKind.BUILD_FAILED: "none"})
    record_event(workspace, "build.failed", DATA["build.failed"])
    assert set(list_notified(workspace)) == {"Admin"}


def test_the_form_offers_the_kinds_of_the_role_and_saves_them(workspace, people, as_bob):
    form = as_bob.get("/w/harbour/notifications/preferences/").context["form"]
    assert list(form.fields) == ["release_updated", "commented", "file_waiting"]
    values = {
        "release_updated": "app",
        "file_waiting": "email",
        "commented": "none",
        "key_expiring": "email",
    }
    assert as_bob.post("/w/harbour/notifications/preferences/", values).status_code == 302
    form = as_bob.get("/w/harbour/notifications/preferences/").context["form"]
    assert {name: form[name].value() for name in form.fields} == {
        "release_updated": "app",
        "commented": "none",
        "file_waiting": "email",
    }
    values["file_waiting"] = "pigeon"
    assert as_bob.post("/w/harbour/notifications/preferences/", values).status_code == 422


def test_every_kind_has_a_rule():
    assert {rule.kind for rule in NOTIFICATION_RULES.values()} == set(NotificationKind)


# --- emails ----------------------------------------------------------------------------------------------


def age(workspace: Workspace, by: timedelta) -> None:
    for row in Notification.objects.in_workspace(workspace):
        row.at -= by
        row.save(update_fields=["at"])


def test_an_email_lists_what_was_not_read_within_five_minutes(workspace, people, prompts, bob, settings):
    settings.PUBLIC_URL = "https://prompts.example.com"
    request_release(workspace, prompts, message="First words", by=Actor.person(bob))
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    create_all_notifications()
    assert send_notification_emails() == 0
    age(workspace, EMAIL_DELAY)
    mark_as_read(people["Admin"])
    assert send_notification_emails() == 2
    by_address = {message.to[0]: message for message in mail.outbox}
    assert set(by_address) == {"alice@example.com", "reviewer@example.com"}
    digest = by_address["alice@example.com"]
    assert digest.subject == "2 notifications from Harbour"
    assert "Bob requested a review of release 1: First words" in digest.body
    assert "https://prompts.example.com/w/harbour/releases/1/" in digest.body
    assert "https://prompts.example.com/w/harbour/notifications/preferences/" in digest.body
    single = by_address["reviewer@example.com"]
    assert single.subject == "Bob requested a review of release 1 (Harbour)"
    assert send_notification_emails() == 0


def test_kinds_without_email_are_not_sent(workspace, people):
    save_preferences(people["Alice"], {NotificationKind.KEY_EXPIRING: "app"})
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    create_all_notifications()
    age(workspace, EMAIL_DELAY)
    send_notification_emails()
    assert [message.to for message in mail.outbox] == [["admin@example.com"]]


class BrokenMailServer:
    """A mail backend that accepts nothing, as one that is down."""

    def __init__(self, *args: object, **options: object) -> None:
        pass

    def send_messages(self, messages: object) -> int:
        raise ConnectionRefusedError("no mail server")


def test_an_email_that_was_not_accepted_is_sent_by_the_next_run(workspace, people, settings):
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    create_all_notifications()
    age(workspace, EMAIL_DELAY)
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = f"{__name__}.BrokenMailServer"
    assert send_notification_emails() == 0
    settings.EMAIL_BACKEND = working
    assert send_notification_emails() == 2
    assert send_notification_emails() == 0


def test_a_line_break_in_a_name_does_not_reach_the_subject(workspace, people):
    Workspace.objects.filter(pk=workspace.pk).update(name="Harbour\nBcc: all@example.com")
    record_event(workspace, "key.expiring", DATA["key.expiring"])
    create_all_notifications()
    age(workspace, EMAIL_DELAY)
    assert send_notification_emails() == 2
    assert mail.outbox[0].subject.endswith("(Harbour Bcc: all@example.com)")
