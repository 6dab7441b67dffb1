"""The pages of one agent: drag and drop, keyboard, read-only users, accessibility."""

import pytest
from playwright.sync_api import Page, expect

from personas.roles import Role
from tests.browser.page_checks import SOME_OR_ALL, axe_violations, find_overflows, sample
from tests.browser.test_accessibility import check_pages
from tests.browser.users import Visit
from tests.factories import (
    join,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_responsibility,
    make_skill,
    make_soul,
    make_tool,
    make_user,
)

pytestmark = pytest.mark.slow

NAMES = ("Memory", "Skills", "Tools", "Context", "Channels", "Versions", "Activity", "Persona")
TABS = ("", "memory/", "skills/", "tools/", "context/", "channels/", "versions/", "activity/")
LONG = "Unbrokenwordthatgoesonandonandonandonandonandonandonandonandonandon"


@pytest.fixture
def pilot(workspace):
    return make_pilot(workspace)


def make_pilot(workspace):
    """Create an agent with records of every kind, some with very long names."""
    pilot = make_agent(
        workspace,
        "pilot",
        identity=make_identity(workspace, "Fox", display_name=LONG, emoji="🦊", creature="fox", vibe="dry"),
        soul=make_soul(workspace, text="Never hurry. " * 60),
        description=f"{LONG} {LONG}",
        tools=[make_tool(workspace, "shell", guidelines="Ask first."), make_tool(workspace, LONG[:60])],
        channels=[make_channel(workspace, "deck"), make_channel(workspace, "bridge")],
    )
    for title in ("Keep the log", "Greet ships", "Light the lamp"):
        make_responsibility(pilot, title)
    make_agent(workspace, "mate", soul=pilot.soul, parent=pilot)
    make_skill(workspace, "knots", agents=[pilot])
    make_memory(workspace, f"High water is at six. {LONG}", agent=pilot)
    return pilot


def titles(page: Page) -> list[str]:
    return page.locator("[data-sortable] .dr-row-link").all_inner_texts()


def handle(page: Page, title: str):
    return page.get_by_role("button", name=f"Move {title}", exact=True)


def sort_status(page: Page):
    return page.locator("[data-sortable-said]")


def drag(page: Page, title: str, onto: str) -> None:
    """Drag the handle past the middle of another row."""
    for one in (title, onto):
        handle(page, one).scroll_into_view_if_needed()
    start, end = handle(page, title).bounding_box(), handle(page, onto).bounding_box()
    assert start
    assert end
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(start["x"] + 8, (start["y"] + end["y"]) / 2)
    page.mouse.move(end["x"] + 8, end["y"] + (2 if end["y"] < start["y"] else end["height"] + 14))
    page.mouse.up()


def confirm_order(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Save and deploy").click()


def test_responsibilities_are_ordered_by_drag_and_by_keyboard(bobs: Visit, pilot, page_errors, live_server):
    page = bobs.page
    bobs.go("agents/pilot/")
    drag(page, "Light the lamp", onto="Keep the log")
    confirm_order(page)
    expect(sort_status(page)).to_have_text("Light the lamp: position 1 of 3. Order saved.")
    assert titles(page) == ["Light the lamp", "Keep the log", "Greet ships"]
    expect(page.get_by_role("button", name="Move Light the lamp up")).to_be_disabled()

    handle(page, "Light the lamp").focus()
    page.keyboard.press("Alt+ArrowDown")
    confirm_order(page)
    handle(page, "Light the lamp").focus()
    page.keyboard.press("Alt+ArrowDown")
    confirm_order(page)
    expect(sort_status(page)).to_have_text("Light the lamp: position 3 of 3. Order saved.")
    bobs.go("agents/pilot/")
    assert titles(page) == ["Keep the log", "Greet ships", "Light the lamp"]

    # The up and down buttons work without script; an order that cannot be saved is reverted.
    bobs.press("Move Greet ships up")
    expect(page.locator("[data-sortable] .dr-row-link").first).to_have_text("Greet ships")
    make_responsibility(pilot, "Ring the bell")
    handle(page, "Greet ships").focus()
    # This 409 is expected, so the browser may log it.
    page_errors.expected_urls.add(f"{live_server.url}/w/harbour/responsibilities/order/")
    page.keyboard.press("Alt+ArrowDown")
    expect(sort_status(page)).to_contain_text(
        "The list must contain each of the agent's active responsibilities exactly once."
    )
    assert titles(page) == ["Greet ships", "Keep the log", "Light the lamp"]


def test_an_agents_tabs_are_accessible_and_a_memory_is_proposed(bobs: Visit, pilot):
    page, checked, problems = bobs.page, sample(NAMES[::-1]), []
    bobs.go("agents/pilot/")
    for tab in NAMES:
        bobs.leave_by(page.get_by_role("navigation", name="Agent").get_by_role("link", name=tab))
        expect(page.get_by_role("heading", level=1)).to_have_text(f"{tab} of Pilot")
        expect(page.get_by_role("region", name="Agent summary")).to_contain_text("Pilot")
        if tab in checked:
            problems += axe_violations(page) + find_overflows(page)
    assert not problems, "\n\n".join(problems)
    bobs.go("agents/pilot/memory/")
    bobs.fill(Text="The lamp is red.")
    bobs.press("Propose")
    bobs.sees_message("Memory proposed.")
    bobs.sees("The lamp is red.")
    page.keyboard.press("e")
    page.wait_for_url("**/agents/pilot/edit/")


@SOME_OR_ALL
def test_the_tabs_of_an_empty_agent_are_accessible_and_read_only_for_viewers(
    logged_in_page, bob, workspace, is_all
):
    if is_all:
        make_pilot(workspace)
        check_pages(logged_in_page(bob), [f"/w/{workspace.slug}/agents/pilot/{tab}" for tab in TABS])
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    make_agent(workspace, "bare")
    page = logged_in_page(viewer)
    bare = TABS if is_all else TABS[:1]
    check_pages(page, [f"/w/{workspace.slug}/agents/bare/{tab}" for tab in bare])
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(0)


def test_the_header_of_an_agent_is_low(alices, pilot):
    """The pages of its tabs begin below the header, even if name and description are long."""
    page = alices.page
    for width, limit in ((1440, 120), (390, 240)):
        page.set_viewport_size({"width": width, "height": 900})
        alices.go("agents/pilot/activity/")
        box = page.locator(".dr-agent").bounding_box()
        assert box is not None
        assert box["height"] <= limit, (width, box["height"])
