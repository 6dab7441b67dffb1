"""Versions and releases in a browser: mouse, keyboard, accessibility."""

from typing import Any

import pytest
from playwright.sync_api import expect

from personas.models import Agent, Soul
from personas.records.services import edit_record
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label
from prompts.publishing.releases.services import request_release
from tests.browser.page_checks import SOME_OR_ALL, axe_violations, find_overflows, sample
from tests.browser.test_accessibility import check_pages
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool

pytestmark = pytest.mark.slow


@pytest.fixture
def crew(workspace):
    """A reviewed and an automatic agent that share a soul, on two channels."""
    soul = make_soul(workspace, text="Be brave.")
    channels = [make_channel(workspace, "deck"), make_channel(workspace, "bridge", formatting="Short lines.")]
    make_agent(workspace, "careful", soul=soul, channels=channels, release_policy="reviewed")
    make_agent(workspace, "quick", soul=soul, channels=channels[:1])
    return soul


def in_production(slug: str) -> list[int]:
    rows = PromptLabel.unscoped.filter(name=PRODUCTION, prompt__agent__slug=slug)
    return sorted(rows.values_list("version__number", flat=True))


def prompt_of(slug: str, channel: str = "deck") -> Any:
    return AgentPrompt.unscoped.select_related("latest").get(agent__slug=slug, channel__slug=channel)


def reword(soul: Soul, text: str) -> None:
    """Edit the soul and rebuild its agents, as another user would."""
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)
    agents = Agent.unscoped.filter(soul=soul)
    rebuild_agents(soul.workspace, [agent.pk for agent in agents])


def test_a_shared_soul_is_released_by_two_users_and_rolled_back_and_a_change_voids_a_request(
    alices, bobs, crew
):
    bobs.go("souls/calm/edit/")
    bobs.fill(Text="Be brave and wise.")
    bobs.press("Save")
    bobs.sees_message("3 prompts rebuilt.")
    bobs.go("releases/")
    bobs.follow("New release")
    bobs.fill(Message="Wiser words")
    bobs.press("Request release of all listed prompts (2)")
    bobs.sees_message("Release 1 requested.")
    bobs.sees("A member other than the requester must approve this release")
    alices.go("releases/")
    alices.follow("Release 1")
    alices.press("Approve")
    alices.sees_message("Release 1: approved.")
    bobs.go("releases/1/")
    bobs.press("Release 2 prompts to production")
    bobs.sees_message("Release 1: released.")
    assert in_production("careful") == [2, 2]
    reword(crew, "Be foolish.")
    alices.go("agents/quick/versions/")
    alices.sees("Soul “Calm” revision 3")
    alices.fill(Reason="Too foolish.")
    alices.press("Roll back to version 2")
    alices.sees_message("Rolled back production to version 2")
    alices.sees("New builds do not change it")
    assert in_production("quick") == [2]
    alices.press("Resume automatic releases")
    assert in_production("quick") == [3]

    bobs.go("releases/new/?agent=careful")
    bobs.fill(Message="Foolish words")
    bobs.press("Request release of all listed prompts (2)")
    reword(crew, "Be wise.")
    alices.go("releases/2/")
    alices.sees("of these prompts changed after it was requested")
    expect(alices.page.get_by_role("main").get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    assert in_production("careful") == [2, 2]


@pytest.mark.hard
def test_text_links_to_its_origin_a_lockfile_opens_and_a_label_is_moved(bobs, crew):
    bobs.go(f"prompts/{prompt_of('quick').pk}/versions/1/")
    row = bobs.page.locator(".dr-said-row.is-soul")
    link = row.get_by_role("link", name="Soul Calm")
    shade = "row => getComputedStyle(row).backgroundColor"
    quiet = row.evaluate(shade)
    link.focus()
    assert row.evaluate(shade) != quiet
    expect(row).to_contain_text("Revision 1, test")
    expect(row).to_contain_text("Be brave.")
    bobs.page.keyboard.press("Enter")
    bobs.page.wait_for_url("**/souls/calm/history/1/")

    bobs.go(f"prompts/{prompt_of('quick').pk}/versions/1/")
    lockfile = bobs.page.locator("#lockfile")
    expect(lockfile.get_by_role("table")).to_have_count(0)
    lockfile.locator("summary").click()
    expect(lockfile.get_by_role("row").filter(has_text="Soul Calm")).to_be_visible()
    bobs.go(f"prompts/{prompt_of('quick').pk}/versions/1/?lockfile=all")
    expect(lockfile.get_by_role("row").filter(has_text="Soul Calm")).to_be_visible()
    bobs.fill(Label="canary")
    bobs.press("Move label")
    bobs.sees_message("“canary” now points to version 1.")
    bobs.go("agents/quick/versions/")
    bobs.press("Remove label canary")
    bobs.sees_message("Label “canary” removed.")


@pytest.mark.hard
def test_two_versions_are_compared_by_keyboard_and_in_a_preview_card(bobs, crew):
    for text in ("Be wise.", "Be wiser."):
        reword(crew, text)
    bobs.go("agents/quick/versions/")
    page = bobs.page
    page.get_by_role("radio", name="Compare from version 2").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Compare from version 1")).to_be_checked()
    page.keyboard.press("Enter")
    page.wait_for_url("**/diff/1/3/")
    bobs.sees("Changes from version 1 to 3")
    expect(page.locator("ins.dr-diff-word").first).to_be_visible()

    # The preview card opens on hover and on keyboard focus, and closes on Escape.
    bobs.go("agents/quick/versions/")
    link, card = page.get_by_role("link", name="What changed in version 3"), page.locator("#peek-3")
    link.hover()
    expect(card).to_contain_text("From version 2 to 3")
    expect(card.locator("ins.dr-diff-word").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.mouse.move(0, 0)
    page.get_by_role("link", name="Version 2", exact=True).focus()
    page.keyboard.press("Tab")
    expect(page.locator("#peek-2")).to_contain_text("From version 1 to 2")
    problems = axe_violations(page)
    assert not problems, "\n".join(problems)
    # The link opens the full diff, whether or not a card was shown.
    page.keyboard.press("Enter")
    page.wait_for_url("**/diff/1/2/")
    bobs.follow("Swap versions")
    page.wait_for_url("**/diff/2/1/")
    bobs.follow("Full text")
    page.wait_for_url("**/diff/2/1/?show=all")
    bobs.sees("Unchanged")


@SOME_OR_ALL
def test_version_pages_are_accessible(alices, crew, workspace, is_all):
    make_memory(workspace, "Hidden\u200bwords and averyveryverylongwordwithoutanybreak" * 8)
    make_agent(workspace, "mute")
    reword(crew, "Be brave.\n\n" + "Line after line.\n" * 30)
    careful = AgentPrompt.objects.in_workspace(workspace).filter(agent__slug="careful")
    request_release(workspace, list(careful), message="First words", by=BY)
    quick = prompt_of("quick")
    move_label(quick, "canary", quick.latest, expected=None, by=BY)
    paths = [
        *("agents/quick/versions/", "agents/mute/versions/", f"prompts/{quick.pk}/versions/3/"),
        *(f"prompts/{quick.pk}/diff/1/3/", "releases/", "releases/1/", "labels/"),
        f"holdings/soul/{crew.pk}/",
    ]
    if is_all:
        paths += [
            *("agents/careful/versions/", f"prompts/{quick.pk}/diff/3/1/?show=all"),
            *(f"prompts/{quick.pk}/diff/1/1/", "releases/?status=voided", "souls/calm/"),
            *("releases/new/", "labels/production/prompts/"),
        ]
    check_pages(alices.page, sample([f"/w/{workspace.slug}/{path}" for path in paths]))
    alices.go("releases/new/")
    assert alices.press("Request release of selected prompts") == 422
    alices.sees_field_error("Message", "required")
    assert not axe_violations(alices.page)


def test_tool_definitions_unfold_and_the_size_table_fits(alices, workspace):
    schema = '{"type": "object", "properties": {"path": {"type": "string"}}}'
    tools = [
        make_tool(workspace, "read_file", description="Reads a file.", parameters=schema),
        make_tool(workspace, f"list_{'long' * 14}"),
    ]
    make_agent(workspace, "quick", channels=[make_channel(workspace, "deck")], tools=tools)
    alices.go(f"prompts/{prompt_of('quick').pk}/versions/1/")
    page = alices.page
    parameters = page.get_by_role("group", name="Parameters of read_file")
    expect(parameters).to_be_hidden()
    page.locator("summary", has_text="read_file").click()
    expect(parameters).to_be_visible()
    assert not axe_violations(page) + find_overflows(page)
    alices.go("agents/quick/versions/")
    expect(page.get_by_role("table", name="Characters and tokens per part")).to_be_visible()
    assert not axe_violations(page) + find_overflows(page)
