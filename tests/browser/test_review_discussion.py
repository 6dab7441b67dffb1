"""Two people in two browsers: a review is requested, discussed, approved and released, without reloading."""

import pytest
from playwright.sync_api import Page, expect

from personas.models import Membership, Soul, User, Workspace
from personas.notifications.services import create_all_notifications
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import AgentPrompt, PromptLabel
from prompts.publishing.builds.services import rebuild_agents
from tests.browser.page_checks import axe_violations
from tests.browser.users import Visit
from tests.factories import BY, join, make_agent, make_channel, make_soul, make_user

pytestmark = pytest.mark.slow


@pytest.fixture
def ada(workspace: Workspace) -> User:
    user = make_user("Ada")
    join(workspace, user, Role.REVIEWER)
    return user


@pytest.fixture
def soul(workspace: Workspace) -> Soul:
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def prompt(workspace: Workspace, soul: Soul) -> AgentPrompt:
    values = {"soul": soul, "channels": [make_channel(workspace, "deck")], "release_policy": "reviewed"}
    agent = make_agent(workspace, "careful", **values)
    rebuild_agents(workspace, [agent.pk])
    return AgentPrompt.objects.in_workspace(workspace).get()


def bell_shows(page: Page, count: int) -> None:
    """Create the notifications, as a worker does, and expect this number at the bell."""
    create_all_notifications()
    expect(page.locator("#dr-bell .dr-bell-count")).to_have_text(str(count))


def test_a_review_is_requested_discussed_and_approved_in_two_browsers(
    bobs: Visit, logged_in_page, ada: User, soul: Soul, prompt: AgentPrompt
):
    workspace = prompt.workspace
    adas = Visit(logged_in_page(ada), workspace.slug)
    adas.go("agents/")
    expect(adas.page.locator("#dr-bell .dr-bell-count")).to_be_hidden()

    bobs.go("releases/new/")
    bobs.fill(Message="First words")
    bobs.page.get_by_label("Ada").check()
    bobs.press("Request release of selected prompts")
    bobs.sees("Requested reviewers")

    # Ada is notified on a page that she does not reload.
    bell_shows(adas.page, 1)
    adas.leave_by(adas.page.locator("#dr-bell"))
    adas.sees("Bob requested your review of release 1")
    assert axe_violations(adas.page) == []
    adas.page.get_by_role("button", name="Bob requested your review of release 1").first.click()
    adas.page.wait_for_url("**/releases/1/")
    expect(adas.page.locator("#dr-bell .dr-bell-count")).to_be_hidden()

    # What Bob types stays while his page updates itself.
    bobs.page.get_by_label("Comment").last.fill("half a sentence")
    adas.page.locator("#comment_text").fill("Why so brave?")
    adas.press("Comment")
    expect(bobs.page.locator("#release-facts")).to_contain_text("Why so brave?")
    expect(bobs.page.locator("#comment_text")).to_have_value("half a sentence")

    adas.page.locator("#changes_text").fill("Softer, please.")
    adas.press("Request changes")
    expect(bobs.page.locator("#release-notes")).to_contain_text("Ada requested changes")
    bell_shows(bobs.page, 2)
    assert axe_violations(bobs.page) == []

    # Bob changes the soul as requested. Both pages show that the release is out of date, and it survives.
    soul.refresh_from_db()
    edit_record(soul, {"text": "Be gentle."}, expected=soul.revision, by=BY)
    rebuild_agents(workspace, soul.agent_ids())
    expect(adas.page.locator("#release-notes")).to_contain_text("out of date")
    expect(bobs.page.locator("#release-notes")).to_contain_text("out of date")
    bobs.press("Request again with the latest versions")
    bell_shows(adas.page, 1)
    expect(adas.page.locator("#release-facts")).to_contain_text("Requested again")

    # Her page compares the new versions now, without a reload.
    expect(adas.page.locator("#release-review")).to_contain_text("Be gentle.")
    adas.press("Approve")
    expect(bobs.page.locator("#release-status")).to_contain_text("Approved")
    bobs.press("Release 1 prompt to production")
    expect(adas.page.locator("#release-status")).to_contain_text("Released")
    labels = PromptLabel.objects.in_workspace(workspace).filter(name="production", prompt=prompt)
    assert labels.get().version.number == 2
    # The approval ended the request for her review.
    create_all_notifications()
    assert Membership.objects.in_workspace(workspace).get(user=ada).unread_count == 0


def test_the_bell_does_not_reload_a_page_whose_session_has_ended(bobs: Visit):
    bobs.go("souls/new/")
    bobs.fill(Name="Half a soul")
    bobs.page.context.clear_cookies()
    with bobs.page.expect_response(lambda response: "/notifications/bell/" in response.url):
        pass
    expect(bobs.page.get_by_label("Name", exact=True)).to_have_value("Half a soul")
