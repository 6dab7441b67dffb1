"""Release pages: request, review, approve, run, reject, override."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.actors import Actor
from personas.models import AuditEvent
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import PRODUCTION, AgentPrompt, LabelRule, PromptLabel, Release, ReleaseStatus
from prompts.publishing.labels.services import roll_back
from prompts.publishing.releases.changes import build_change_key, trim_common_ends
from prompts.publishing.releases.selectors import list_releasable_prompts
from prompts.publishing.releases.services import approve_release, request_release, run_release
from tests.factories import BY, PASSWORD, join, make_agent, make_channel, make_soul, make_user, make_workspace
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_stage,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
LIMIT = 8
# Every page queries the session, the user and the membership.
EVERY_PAGE = 3


def set_stage(shared: SharedCast) -> None:
    """Create a reviewed agent on two channels without releases, and the admin Ada."""
    workspace = shared.workspace
    ada = make_user("Ada")
    join(workspace, ada, Role.ADMIN)
    shared.sign_in("Ada", ada)
    shared.soul = make_soul(workspace, text="Be brave.")
    shared.channels = [make_channel(workspace, "deck"), make_channel(workspace, "bridge")]
    values = {"soul": shared.soul, "channels": shared.channels, "release_policy": "reviewed"}
    shared.careful = make_agent(workspace, "careful", **values)


@pytest.fixture
def soul(stage):
    return stage.soul


@pytest.fixture
def channels(stage):
    return stage.channels


@pytest.fixture
def careful(stage):
    return stage.careful


@pytest.fixture
def admin(stage):
    return stage.client("Ada")


@pytest.fixture
def requested(workspace, careful, by_bob) -> Release:
    return request_release(workspace, list_releasable_prompts(workspace), message="First words", by=by_bob)


def prompts():
    return list(AgentPrompt.unscoped.select_related("latest").order_by("pk"))


def choices():
    return [f"{prompt.pk}:{prompt.latest_id}" for prompt in prompts()]


def ask(client, **data):
    form = {"message": "First words", "prompts": choices()} | data
    return client.post("/w/harbour/releases/new/", form)


def submit_action(client, number, action, **data):
    """Submit a release action and return the messages of the next page."""
    response = client.post(f"/w/harbour/releases/{number}/{action}/", data, follow=True)
    assert response.redirect_chain, response.status_code
    return " ".join(str(message) for message in response.context["messages"])


def page(client, path):
    response = client.get(f"/w/harbour/{path}")
    assert response.status_code == 200
    return response.content.decode()


def in_production():
    return sorted(PromptLabel.unscoped.filter(name=PRODUCTION).values_list("version__number", flat=True))


def reword(soul, text):
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)


@pytest.fixture
def by_bob(bob) -> Actor:
    return Actor.person(bob)


@pytest.fixture
def live(careful, workspace, by_alice, by_bob) -> None:
    """Release everything that can be released."""
    release = request_release(workspace, list_releasable_prompts(workspace), message="Go", by=by_bob)
    approve_release(release, by=by_alice)
    run_release(release, by=by_alice)


# --- requests ------------------------------------------------------------------------------------------


def test_what_is_behind_is_offered_and_what_is_chosen_is_requested(as_bob, careful):
    html = page(as_bob, "releases/new/")
    assert html.count('name="prompts"') == 2
    assert "Needs approval from another member" in html
    response = ask(as_bob, prompts=choices()[:1])
    assert response.url == "/w/harbour/releases/1/"
    release = Release.unscoped.get()
    assert (release.message, release.items.count()) == ("First words", 1)


def test_all_that_is_shown_can_be_requested_at_once(as_bob, careful):
    ask(as_bob, prompts=[], shown=choices(), everything="1")
    assert Release.unscoped.get().items.count() == 2


def test_the_agent_filter_offers_only_that_agents_prompts(as_bob, careful, workspace, soul, channels):
    make_agent(workspace, "other", soul=soul, channels=channels, release_policy="reviewed")
    html = page(as_bob, "releases/new/?agent=other")
    assert html.count('name="prompts"') == 2
    assert "Careful ·" not in html


def test_a_request_needs_a_message_and_a_prompt(as_bob, careful):
    assert ask(as_bob, message=" ").status_code == 422
    assert ask(as_bob, prompts=[]).status_code == 422
    assert not Release.unscoped.exists()


@pytest.mark.slow
def test_what_was_built_after_the_page_was_drawn_is_not_requested(as_bob, careful, soul):
    seen = re.findall(r'name="prompts" value="([^"]+)"', page(as_bob, "releases/new/"))
    reword(soul, "Be wise.")
    response = ask(as_bob, prompts=seen)
    assert (len(seen), response.status_code) == (2, 422)
    assert "A prompt was rebuilt or released after you opened this page" in response.content.decode()
    assert not Release.unscoped.exists()


def test_a_strangers_prompt_cannot_be_slipped_in(as_mallory, careful, elsewhere):
    response = as_mallory.post("/w/elsewhere/releases/new/", {"message": "Mine", "prompts": choices()})
    assert response.status_code == 422
    assert not Release.unscoped.exists()


def test_nothing_to_release_says_so(as_alice, alice):
    make_workspace("Quay", owner=alice)
    assert "Nothing to release" in as_alice.get("/w/quay/releases/new/").content.decode()
    assert "No releases yet" in as_alice.get("/w/quay/releases/").content.decode()


# --- decisions -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_person_approves_and_production_moves(as_alice, as_bob, requested):
    assert "need approval from another member" in submit_action(as_bob, 1, "publish")
    assert submit_action(as_alice, 1, "approve") == "Release 1: approved."
    assert submit_action(as_bob, 1, "publish") == "Release 1: released."
    assert in_production() == [1, 1]
    html = page(as_bob, "releases/1/")
    assert "Approved by" in html
    assert "alice@example.com" in html


def test_a_user_cannot_approve_an_own_request(as_alice, careful):
    ask(as_alice)
    assert ">Approve<" not in page(as_alice, "releases/1/")
    response = as_alice.post("/w/harbour/releases/1/approve/")
    assert response.status_code == 403
    assert "must approve" in response.content.decode()
    assert in_production() == []


def test_an_editor_may_not_approve_reject_or_override(as_bob, requested):
    for action in ("approve", "reject", "override"):
        response = as_bob.post(f"/w/harbour/releases/1/{action}/", {"reason": "Now."})
        assert response.status_code == 403
    assert in_production() == []


@pytest.mark.slow
def test_a_change_voids_the_release_and_it_says_why(as_alice, as_bob, requested, soul):
    reword(soul, "Be wise.")
    assert "changed after it was requested" in page(as_alice, "releases/1/")
    assert "Changed after the request" in submit_action(as_alice, 1, "approve")
    html = page(as_alice, "releases/1/")
    assert "Invalidated" in html
    assert (
        "Changed after the request: Careful · Deck and Careful · Bridge. Request the release again." in html
    )
    assert Release.unscoped.get().status == ReleaseStatus.VOIDED
    assert in_production() == []


def test_a_rejection_says_why(as_alice, requested):
    assert "A reason is required" in submit_action(as_alice, 1, "reject", reason=" ")
    submit_action(as_alice, 1, "reject", reason="Too brave.")
    html = page(as_alice, "releases/1/")
    assert "Rejected by" in html
    assert "Too brave." in html


def test_a_request_can_be_withdrawn_once(as_bob, requested):
    assert "Release 1: withdrawn." in submit_action(as_bob, 1, "withdraw")
    assert "withdrawn" in submit_action(as_bob, 1, "withdraw")


def test_an_emergency_is_for_admins_has_a_reason_and_shows(admin, requested):
    assert "A reason is required" in submit_action(admin, 1, "override")
    submit_action(admin, 1, "override", reason="The old one insults people.")
    assert in_production() == [1, 1]
    html = page(admin, "releases/1/")
    assert "Released without approval by" in html
    assert "The old one insults people." in html
    assert AuditEvent.unscoped.filter(verb="overridden").exists()


@pytest.mark.slow
def test_a_release_of_an_automatic_agent_needs_no_approval(as_bob, workspace, channels, soul, by_alice):
    make_agent(workspace, "quick", soul=soul, channels=channels[:1])
    reword(soul, "Be wise.")
    quick = prompts()[-1]
    roll_back([quick], by=by_alice, note="Back.")
    ask(as_bob, prompts=choices()[-1:])
    assert "Release 1: released." in submit_action(as_bob, 1, "publish")
    assert in_production() == [2]


def test_a_release_that_is_not_there_is_not_found(as_bob, requested):
    assert as_bob.get("/w/harbour/releases/2/").status_code == 404
    assert as_bob.get(f"/w/harbour/releases/{10**30}/").status_code == 404
    assert as_bob.post("/w/harbour/releases/2/withdraw/").status_code == 404


# --- changes -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("live")
def test_the_same_change_is_shown_once_with_its_prompts(as_alice, as_bob, soul):
    reword(soul, "Be wise.")
    ask(as_bob)
    [group] = as_alice.get("/w/harbour/releases/2/").context["changes"].groups
    assert len(group.items) == 2
    assert [section.name for section in group.diff.changed] == ["soul"]
    assert page(as_alice, "releases/2/").count("dr-diff-line is-added") == 1


@pytest.mark.usefixtures("live")
def test_other_changes_are_shown_apart(as_alice, as_bob, channels, soul):
    edit_record(channels[0], {"formatting": "Short lines."}, expected=1, by=BY)
    reword(soul, "Be wise.")
    ask(as_bob)
    groups = as_alice.get("/w/harbour/releases/2/").context["changes"].groups
    assert sorted([section.name for section in group.diff.changed] for group in groups) == [
        ["soul"],
        ["soul", "formatting"],
    ]


def test_first_releases_are_listed_without_a_diff(as_alice, requested):
    [group] = as_alice.get("/w/harbour/releases/1/").context["changes"].groups
    assert (group.is_first, group.diff, len(group.items)) == (True, None, 2)
    text = page(as_alice, "releases/1/")
    assert "New in production" in text
    # Nothing was there before, so the sentence speaks of no changes.
    assert re.search(r"Adds 2 prompts for 1 agent, \+\d+ tokens\.", text)
    assert "no longer cached" not in text
    # The reviewer reads the text here, without opening each prompt.
    assert text.count("full text") == 2
    assert "Be brave." in text


def row(section, text):
    return {"section": section, "text": text}


def test_equal_changes_have_equal_keys_whatever_stands_around_them():
    one = build_change_key(
        ([row("a", "x"), row("a", "old"), row("b", "q")], "", []),
        ([row("a", "x"), row("a", "new"), row("b", "q")], "", []),
    )
    other = build_change_key(
        ([row("a", "old"), row("a", "y")], "", []), ([row("a", "new"), row("a", "y")], "", [])
    )
    assert one == other
    assert one != build_change_key(([row("a", "old")], "", []), ([row("a", "newer")], "", []))
    assert one != build_change_key(([row("a", "old")], "t1", []), ([row("a", "new")], "t2", []))
    files = [[{"name": "tea", "content": content}] for content in ("d1", "d2")]
    assert one != build_change_key(([row("a", "old")], "", files[0]), ([row("a", "new")], "", files[1]))
    assert one == build_change_key(([row("a", "old")], "", files[0]), ([row("a", "new")], "", files[0]))


def test_what_both_begin_and_end_with_is_left_out():
    assert trim_common_ends([(1,), (2,), (3,)], [(1,), (9,), (3,)]) == (((2,),), ((9,),))
    assert trim_common_ends([(1,)], [(1,), (1,)]) == ((), ((1,),))
    assert trim_common_ends([], [(1,)]) == ((), ((1,),))


# --- lists and labels ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_list_takes_few_queries_whatever_its_length(as_bob, requested):
    page(as_bob, "releases/")  # the first visit writes to the session
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            page(as_bob, "releases/")
        counts.append(len(queries))
        ask(as_bob)
        page(as_bob, "releases/1/")  # consumes the message
    assert counts[0] == counts[-1] <= LIMIT + EVERY_PAGE


def test_releases_are_narrowed_by_status(as_bob, requested):
    submit_action(as_bob, 1, "withdraw")
    ask(as_bob)
    assert "Release 1<" not in page(as_bob, "releases/?status=open")
    assert "Release 2<" in page(as_bob, "releases/?status=open")
    assert "Release 1<" in page(as_bob, "releases/?status=withdrawn")


def test_owners_protect_labels_and_lift_it_again(as_alice, as_bob, workspace):
    response = as_alice.post("/w/harbour/labels/protect/", {"label": "canary", "protected": "1"}, follow=True)
    assert "Only owners can now move “canary”." in response.content.decode()
    assert LabelRule.unscoped.get().is_protected
    assert "Owners only" in page(as_bob, "labels/")
    assert as_bob.post("/w/harbour/labels/protect/", {"label": "canary"}).status_code == 403
    as_alice.post("/w/harbour/labels/protect/", {"label": "canary"})
    assert not LabelRule.unscoped.get().is_protected


def test_a_bad_label_is_rejected_with_a_message(as_alice, workspace):
    for label in ("latest", "Not A Label", "", "x" * 41):
        response = as_alice.post(
            "/w/harbour/labels/protect/", {"label": label, "protected": "1"}, follow=True
        )
        assert [message.level_tag for message in response.context["messages"]] == ["error"]
    assert not LabelRule.unscoped.exists()


def test_an_override_requires_a_recent_login(workspace, alice, by_alice, client, stage):
    prompt = AgentPrompt.objects.in_workspace(workspace).filter(agent=stage.careful)[0]
    release = request_release(workspace, [prompt], message="First", by=by_alice)
    alice.set_password(PASSWORD)
    alice.save()
    client.force_login(alice)
    answer = client.post(f"/w/{workspace.slug}/releases/{release.number}/override/", {"reason": "Fire."})
    assert answer.status_code == 302
    assert "/reauthenticate/" in answer["Location"]
    release.refresh_from_db()
    assert release.status == ReleaseStatus.REQUESTED


def test_the_author_of_a_change_sees_that_others_must_approve(workspace, as_bob, by_alice, bob, stage):
    soul = edit_record(stage.soul, {"text": "Be kind."}, expected=stage.soul.revision, by=Actor.person(bob))
    assert soul.revision == 2
    prompt = AgentPrompt.objects.in_workspace(workspace).filter(agent=stage.careful)[0]
    release = request_release(workspace, [prompt], message="First", by=by_alice)
    page = as_bob.get(f"/w/{workspace.slug}/releases/{release.number}/").content.decode()
    assert "Another member must approve this release" in page


@pytest.mark.slow
@pytest.mark.parametrize("path", ["releases/new/", "releases/1/"])
def test_the_number_of_queries_does_not_grow_with_the_prompts(path, as_bob, workspace, stage, by_bob):
    counts = []
    for agents in (1, 3):
        for number in range(agents):
            make_agent(
                workspace,
                f"more-{agents}-{number}",
                soul=stage.soul,
                channels=stage.channels,
                release_policy="reviewed",
            )
        if path == "releases/1/":
            Release.unscoped.filter(status=ReleaseStatus.REQUESTED).update(number=100 + agents)
            release = request_release(
                workspace, list_releasable_prompts(workspace), message="First", by=by_bob
            )
            Release.unscoped.filter(pk=release.pk).update(number=1)
        page(as_bob, path)
        with CaptureQueriesContext(connection) as queries:
            page(as_bob, path)
        counts.append(len(queries))
    assert counts[0] == counts[1]
