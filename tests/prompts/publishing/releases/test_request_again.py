"""A release that is out of date or voided is requested again: same number, latest versions, new approval."""

import pytest

from personas.actors import Actor
from personas.models import AuditEvent, Membership, Notification
from personas.notifications.services import create_all_notifications
from personas.records.services import edit_record
from personas.roles import Role
from prompts.errors import NotAllowed, NothingToRelease, ReleaseClosed
from prompts.models import AgentPrompt, PromptLabel, ReleaseItem, ReleaseStatus
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.releases import services
from prompts.publishing.releases.comments import comment_on_release
from prompts.publishing.releases.services import (
    approve_release,
    request_again,
    request_release,
    run_release,
    withdraw_release,
)
from tests.factories import BY, join, make_agent, make_channel, make_soul, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def by_bob(bob) -> Actor:
    return Actor.person(bob)


@pytest.fixture
def ada(workspace) -> Actor:
    user = make_user("Ada")
    join(workspace, user, Role.REVIEWER)
    return Actor.person(user)


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def release(workspace, soul, by_bob, ada):
    channels = [make_channel(workspace, "deck")]
    agent = make_agent(workspace, "careful", soul=soul, channels=channels, release_policy="reviewed")
    rebuild_agents(workspace, [agent.pk])
    reviewers = list(Membership.objects.in_workspace(workspace).filter(user=ada.user))
    prompts = AgentPrompt.objects.in_workspace(workspace)
    return request_release(workspace, prompts, message="First words", by=by_bob, reviewers=reviewers)


def reword(soul, text: str) -> None:
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)
    rebuild_agents(soul.workspace, soul.agent_ids())


def list_verbs(release) -> list[str]:
    rows = AuditEvent.objects.in_workspace(release.workspace_id).filter(kind="release", object_id=release.pk)
    return list(rows.order_by("pk").values_list("verb", flat=True))


def get_production(workspace) -> int:
    return PromptLabel.objects.in_workspace(workspace).get(name="production").version.number


def test_a_save_that_changes_none_of_its_prompts_leaves_a_release_approved(workspace, release, ada, by_bob):
    approve_release(release, by=ada)
    other = make_soul(workspace, "Other", text="Nobody has this.")
    reword(other, "Still nobody.")
    assert run_release(release, by=by_bob).status == ReleaseStatus.RELEASED


def test_an_approved_release_is_requested_again_with_the_latest_versions(
    workspace, release, soul, ada, by_bob
):
    comment_on_release(release, text="Well said.", by=ada)
    approve_release(release, by=ada)
    reword(soul, "Be wise.")
    again = request_again(release, by=by_bob)
    assert (again.number, again.status, again.decided_label) == (1, ReleaseStatus.REQUESTED, "")
    assert ReleaseItem.objects.in_workspace(workspace).get().version.number == 2
    # The approval and the comment stay in the timeline.
    verbs = ["requested", "review requested", "commented", "approved", "requested again", "review requested"]
    assert list_verbs(again) == verbs
    approve_release(again, by=ada)
    run_release(again, by=by_bob)
    assert get_production(workspace) == 2


def test_the_approval_of_the_versions_before_does_not_count(release, soul, ada, by_bob):
    approve_release(release, by=ada)
    reword(soul, "Be wise.")
    again = request_again(release, by=by_bob)
    with pytest.raises(NotAllowed):
        run_release(again, by=by_bob)
    assert not PromptLabel.objects.in_workspace(release.workspace_id).filter(name="production").exists()


@pytest.mark.planted
def test_versions_replaced_under_an_approval_are_detected(release, soul, ada, by_bob, monkeypatch):
    def keep_approval(release, *, by):
        services.replace_outdated_items(release)
        return release

    monkeypatch.setattr(f"{__name__}.request_again", keep_approval)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_the_approval_of_the_versions_before_does_not_count(release, soul, ada, by_bob)


def test_a_voided_release_comes_back_with_one_click(workspace, release, soul, ada, as_bob):
    reword(soul, "Be wise.")
    assert approve_release(release, by=ada).status == ReleaseStatus.VOIDED
    assert "Request again with the latest versions" in as_bob.get("/w/harbour/releases/1/").content.decode()
    assert as_bob.post("/w/harbour/releases/1/request-again/").url == "/w/harbour/releases/1/"
    release.refresh_from_db()
    assert (release.status, release.reason) == (ReleaseStatus.REQUESTED, "")
    assert approve_release(release, by=ada).status == ReleaseStatus.APPROVED


def test_reviewers_are_notified_again_and_the_requester_is_not(workspace, release, soul, ada, by_bob):
    create_all_notifications()
    approve_release(release, by=ada)
    reword(soul, "Be wise.")
    request_again(release, by=by_bob)
    create_all_notifications()
    rows = Notification.objects.in_workspace(workspace).filter(read_at=None, kind="review_requested")
    people = rows.values_list("member__user__name", "event__type")
    assert sorted(people) == [("Ada", "release.review_requested"), ("Alice", "release.requested")]


def test_who_requests_it_again_cannot_approve_it(release, soul, ada):
    reword(soul, "Be wise.")
    again = request_again(release, by=ada)
    with pytest.raises(NotAllowed):
        approve_release(again, by=ada)


def test_a_reviewer_does_not_approve_versions_that_the_page_did_not_show(
    release, soul, ada, by_bob, as_alice
):
    page = as_alice.get("/w/harbour/releases/1/")
    seen = {"seen": page.context["items_hash"]}
    reword(soul, "Be wise.")
    request_again(release, by=by_bob)
    as_alice.post("/w/harbour/releases/1/approve/", seen)
    release.refresh_from_db()
    assert release.status == ReleaseStatus.REQUESTED
    # The open page gets the new comparison and the new hash with its next update.
    live = f"/w/harbour/releases/1/live/?seen={page.context['mark']}&items={page.context['items_hash']}"
    part = as_alice.get(live)
    assert "Be wise." in part.content.decode()
    as_alice.post("/w/harbour/releases/1/approve/", {"seen": part.context["items_hash"]})
    release.refresh_from_db()
    assert release.status == ReleaseStatus.APPROVED


def test_an_update_without_new_versions_does_not_replace_the_comparison(release, ada, as_bob):
    page = as_bob.get("/w/harbour/releases/1/")
    comment_on_release(release, text="Why?", by=ada)
    live = f"/w/harbour/releases/1/live/?seen={page.context['mark']}&items={page.context['items_hash']}"
    part = as_bob.get(live).content.decode()
    assert ("Why?" in part, "release-review" in part) == (True, False)


def test_a_request_without_new_versions_reminds_the_reviewers_and_keeps_the_requester(release, ada, by_bob):
    again = request_again(release, by=ada)
    assert (again.requested_by, again.status) == (by_bob.user, ReleaseStatus.REQUESTED)
    assert list_verbs(again)[-1] == "requested again"


def test_an_approved_release_with_the_latest_versions_and_a_withdrawn_one_stay(release, ada, by_bob):
    approve_release(release, by=ada)
    with pytest.raises(NothingToRelease):
        request_again(release, by=by_bob)
    withdraw_release(release, by=by_bob)
    with pytest.raises(ReleaseClosed):
        request_again(release, by=by_bob)
