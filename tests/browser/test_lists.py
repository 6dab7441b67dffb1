"""Lists in a browser: sorting, bulk actions, undo, export."""

import re

import pytest
from playwright.sync_api import expect

from personas.api_keys.services import create_key
from personas.models import AuditEvent, Tool
from tests.browser.page_checks import axe_violations, find_overflows, sample
from tests.factories import BY, make_agent, make_memory, make_skill, make_tool

pytestmark = pytest.mark.slow


def test_rows_are_sorted_selected_archived_and_restored(bobs, workspace):
    for name in ("lamp", "bell", "anchor"):
        make_tool(workspace, name)
    page = bobs.page
    bobs.go("tools/")
    bobs.leave_by(page.get_by_role("link", name="Tool", exact=True))
    expect(page).to_have_url(re.compile(r"sort=-name"))
    expect(page.locator("tbody tr").first).to_contain_text("lamp")
    expect(page.get_by_role("columnheader", name="Tool")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("checkbox", name="Select all on this page").check()
    bar = page.locator("form.dr-bulk")
    expect(bar).to_contain_text("3 selected")
    page.get_by_role("checkbox", name="Select lamp").uncheck()
    expect(bar).to_contain_text("2 selected")
    assert not axe_violations(page)
    bobs.leave_by(bar.get_by_role("button", name="Archive"))
    bobs.sees_message("Archived: 2 tools.")
    expect(page.locator("tbody tr")).to_have_count(1)
    bobs.leave_by(page.get_by_role("button", name="Undo"))
    bobs.sees_message("Restored: 2 tools.")
    assert Tool.objects.in_workspace(workspace).filter(archived_at=None).count() == 3
    expect(page).to_have_url(re.compile(r"sort=-name"))


def test_a_filtered_list_is_exported(bobs, workspace):
    for text in ("A green kettle.", "A red kettle.", "A teapot."):
        make_memory(workspace, text)
    page = bobs.page
    bobs.go("memories/?q=kettle")
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV, for spreadsheets").click()
    file = download.value
    assert re.fullmatch(rf"{workspace.slug}-memories-\d{{4}}-\d\d-\d\d\.csv", file.suggested_filename)
    text = file.path().read_text(encoding="utf-8-sig")
    assert "A green kettle." in text
    assert "A teapot." not in text


def test_lists_are_accessible_in_both_themes_and_at_every_width(alices, workspace, by_alice):
    for number in range(3):
        create_key(workspace, f"Desk {number}", {}, by=by_alice)
        make_skill(workspace)
        make_memory(workspace, "A fact " * 30, by=BY)
    event = AuditEvent.objects.in_workspace(workspace).filter(kind="skill").first()
    assert event
    problems = []
    paths = ("audit/", "memories/", "keys/", "members/", f"audit/{event.pk}/", "ledger/", "memories/?q=zzz")
    for path in sample(paths):
        assert alices.go(path) == 200
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    assert not problems
    alices.go("keys/")
    alices.page.get_by_role("checkbox", name="Select all on this page").check()
    alices.leave_by(alices.page.get_by_role("button", name="Revoke…"))
    alices.sees("Revoke 3 keys?")
    assert not axe_violations(alices.page)
    alices.press("Revoke all 3 keys")
    alices.sees_message("Revoked: 3 keys.")


def test_a_view_is_saved_under_a_name_and_opened_from_the_menu_and_the_palette(bobs, workspace):
    make_agent(workspace, "pilot", layout="opal")
    make_agent(workspace, "cook")
    page = bobs.page
    bobs.go("agents/?layout=opal&sort=-changed&page=1")
    page.locator("summary", has_text="Views").click()
    page.get_by_label("View name").fill("Opal agents")
    page.get_by_role("button", name="Save view").click()
    saved = page.get_by_role("link", name="Opal agents")
    expect(saved).to_have_attribute("aria-current", "page")
    assert not axe_violations(page)
    bobs.go("agents/")
    page.locator("summary", has_text="Views").click()
    page.get_by_role("link", name="Opal agents").click()
    page.wait_for_url("**/agents/?layout=opal&sort=-changed")
    expect(page.get_by_role("link", name="Cook")).to_have_count(0)
    bobs.go("souls/")
    bobs.search_palette("opal ag")
    page.get_by_role("option", name="Opal agents").click()
    page.wait_for_url("**/agents/?layout=opal&sort=-changed")
    page.locator("summary", has_text="Views").click()
    page.get_by_role("button", name="Delete view: Opal agents").click()
    expect(page.get_by_role("link", name="Opal agents")).to_have_count(0)
