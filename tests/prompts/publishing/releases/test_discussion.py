"""Reviewers asked by name, comments, requests for changes, and the page that updates itself."""

import pytest

from personas.actors import Actor
from personas.errors import InvalidInput
from personas.events.selectors import list_events_after
from personas.models import AuditEvent, Membership, Notification
from personas.notifications.services import create_all_notifications
from personas.roles import Role
from prompts.errors import NotAllowed, ReleaseClosed
from prompts.models import AgentPrompt, ReleaseComment, ReleaseStatus
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.releases.comments import comment_on_release, request_changes
from prompts.publishing.releases.services import (
    approve_release,
    request_release,
    request_review,
    run_release,
    withdraw_release,
)
from tests.factories import join, make_agent, make_channel, make_soul, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(workspace):
    user = make_user("Ada")
    join(workspace, user, Role.REVIEWER)
    return user


@pytest.fixture
def prompts(workspace):
    soul = make_soul(workspace, text="Be brave.")
    channels = [make_channel(workspace, "deck")]
    agent = make_agent(workspace, "careful", soul=soul, channels=channels, release_policy="reviewed")
    rebuild_agents(workspace, [agent.pk])
    return list(AgentPrompt.objects.in_workspace(workspace).select_related("latest"))


@pytest.fixture
def release(workspace, prompts, bob, ada):
    return request_release(workspace, prompts, message="First words", by=Actor.person(bob))


def find_member(workspace, user) -> Membership:
    return Membership.objects.in_workspace(workspace).select_related("user").get(user=user)


def list_titles(workspace) -> list[tuple[str, str]]:
    create_all_notifications()
    rows = Notification.objects.in_workspace(workspace).select_related("member__user", "event")
    return sorted((str(row.member.user), row.event.type) for row in rows)


# --- reviewers -------------------------------------------------------------------------------------------


def test_a_reviewer_asked_by_name_is_notified_once(workspace, prompts, bob, ada):
    reviewers = [find_member(workspace, ada)]
    release = request_release(workspace, prompts, message="Go", by=Actor.person(bob), reviewers=reviewers)
    assert list_titles(workspace) == [("Ada", "release.review_requested"), ("Alice", "release.requested")]
    request_review(release, reviewers, by=Actor.person(bob))
    assert len(list_titles(workspace)) == 2


def test_who_cannot_approve_cannot_be_asked(workspace, release, bob):
    join(workspace, make_user("Eve"), Role.EDITOR)
    for user in ("Eve", "Bob"):
        member = Membership.objects.in_workspace(workspace).select_related("user").get(user__name=user)
        with pytest.raises(InvalidInput):
            request_review(release, [member], by=Actor.person(bob))


def test_the_form_asks_reviewers_and_the_page_shows_them(workspace, prompts, as_bob, ada):
    page = as_bob.get("/w/harbour/releases/new/").content.decode()
    assert "Ada" in page
    values = {
        "message": "Go",
        "prompts": [f"{prompt.pk}:{prompt.latest_id}" for prompt in prompts],
        "reviewers": [find_member(workspace, ada).pk],
    }
    response = as_bob.post("/w/harbour/releases/new/", values, follow=True)
    text = response.content.decode()
    assert "Requested reviewers" in text
    assert "Waiting for review" in text


def test_more_reviewers_are_asked_on_the_page(workspace, release, as_bob, alice):
    member = find_member(workspace, alice)
    as_bob.post(f"/w/harbour/releases/{release.number}/request-review/", {"reviewers": [member.pk]})
    assert [str(row.user) for row in release.reviewers.all()] == ["Alice"]
    response = as_bob.post(f"/w/harbour/releases/{release.number}/request-review/", {}, follow=True)
    assert "Select at least one member." in response.content.decode()


# --- comments and requests for changes -------------------------------------------------------------------


def test_a_comment_notifies_the_others_of_the_discussion(workspace, release, bob, ada, alice):
    comment_on_release(release, text="Why so brave?", by=Actor.person(ada))
    comment_on_release(release, text="Because.", by=Actor.person(bob))
    commented = [name for name, kind in list_titles(workspace) if kind == "release.commented"]
    assert commented == ["Ada", "Bob"]


@pytest.mark.parametrize("text", ["", "   ", "x" * 4_001, "a\x00b"])
def test_a_comment_needs_text_of_limited_length(release, ada, text):
    with pytest.raises(InvalidInput):
        comment_on_release(release, text=text, by=Actor.person(ada))
    assert not ReleaseComment.objects.in_workspace(release.workspace_id).exists()


def test_a_request_for_changes_ends_an_approval_and_both_stay_in_the_timeline(
    workspace, release, ada, by_alice, as_bob
):
    by_bob = Actor.person(release.requested_by)
    approve_release(release, by=by_alice)
    request_changes(release, reason="Softer, please.", by=Actor.person(ada))
    release.refresh_from_db()
    assert release.status == ReleaseStatus.REQUESTED
    with pytest.raises(NotAllowed):
        run_release(release, by=by_bob)
    page = as_bob.get(f"/w/harbour/releases/{release.number}/").content.decode()
    timeline = page.partition('id="timeline-title"')[2].partition("</section>")[0]
    assert timeline.index("Approved") < timeline.index("Requested changes")
    assert "Softer, please." in timeline
    assert "Ada" in page.partition('id="release-notes"')[2].partition("requested changes")[0]
    approve_release(release, by=Actor.person(ada))
    run_release(release, by=by_bob)
    page = as_bob.get(f"/w/harbour/releases/{release.number}/").content.decode()
    assert "Softer, please." not in page.partition('id="release-notes"')[2].partition("<section")[0]
    assert ("Bob", "release.changes_requested") in list_titles(workspace)


def test_the_requester_cannot_request_changes(release, bob):
    with pytest.raises(NotAllowed):
        request_changes(release, reason="Softer", by=Actor.person(bob))


def test_a_closed_release_takes_comments_and_no_request_for_changes(release, bob, ada):
    withdraw_release(release, by=Actor.person(bob))
    with pytest.raises(ReleaseClosed):
        request_changes(release, reason="Softer", by=Actor.person(ada))
    comment_on_release(release, text="Pity.", by=Actor.person(ada))


def test_the_text_of_comments_is_neither_in_events_nor_in_the_audit_log(workspace, release, ada):
    comment_on_release(release, text="Secretly brave", by=Actor.person(ada))
    assert not any("Secretly" in str(event.data) for event in list_events_after(workspace, 0))
    rows = AuditEvent.objects.in_workspace(workspace)
    assert not any("Secretly" in str(row.after) for row in rows)


def test_the_page_of_a_release_is_returned_again_only_after_a_change(release, as_bob, ada):
    context = as_bob.get(f"/w/harbour/releases/{release.number}/").context
    url = f"/w/harbour/releases/{release.number}/live/?seen={context['mark']}"
    assert as_bob.get(url).status_code == 204
    comment_on_release(release, text="<b>Why?</b>", by=Actor.person(ada))
    part = as_bob.get(url)
    assert part.status_code == 200
    assert "&lt;b&gt;Why?" in part.content.decode()
    assert part.content.decode().count('hx-swap-oob="true"') == 5
    again = f"/w/harbour/releases/{release.number}/live/?seen={part.context['mark']}"
    assert as_bob.get(again).status_code == 204


# --- API -------------------------------------------------------------------------------------------------


def test_the_api_asks_reviewers_and_lists_comments(workspace, prompts, admin, bob, ada):
    body = {
        "message": "Go",
        "prompts": [{"agent": "careful", "channel": "deck"}],
        "reviewers": ["ada@example.com"],
    }
    response = admin.post("releases", body)
    assert response.status_code == 201
    assert response.json()["reviewers"] == ["ada@example.com"]
    number = response.json()["number"]
    assert admin.post(f"releases/{number}/comments", {"text": "Look."}).status_code == 201
    assert admin.post(f"releases/{number}/comments", {"text": " "}).status_code == 422
    [comment] = admin.get(f"releases/{number}/comments").json()["items"]
    assert comment["text"] == "Look."
    assert not comment["is_change_request"]
    assert admin.post(f"releases/{number}:requestChanges", {"reason": "No"}).status_code == 403
    problem = admin.post(f"releases/{number}:requestReview", {"reviewers": ["bob@example.com"]})
    assert problem.status_code == 422
    assert problem.json()["errors"][0]["pointer"] == "/reviewers/0"
