"""The inbox and a file's page: hidden characters are shown, decisions apply, and updates load by polling."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from skills.agent_context.services import choose_context
from tests.browser.page_checks import SOME_OR_ALL, axe_violations, find_overflows, sample
from tests.browser.users import Visit, field
from tests.factories import BY, make_agent, make_skill, make_source, refreshed
from tests.skills.files.file_samples import (
    GOOD,
    POISON,
    approve_file_at,
    file_at,
    make_source_in_every_status,
    write,
    write_skill,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    return tmp_path


@pytest.fixture
def poisoned(workspace, root):
    """A file that was approved, then changed to contain an attack."""
    source = make_source(workspace, root)
    write(root / "AGENTS.md", GOOD)
    refreshed(source)
    approve_file_at(source)
    write(root / "AGENTS.md", POISON)
    refreshed(source)
    return file_at(source)


def row(visit: Visit, path: str):
    return visit.page.get_by_role("row").filter(has_text=path)


def test_a_quarantined_revision_is_shown_explained_and_waived(alices: Visit, poisoned):
    page = alices.page
    alices.go("inbox/")
    expect(row(alices, "AGENTS.md")).to_contain_text("Quarantined")
    expect(row(alices, "AGENTS.md")).to_contain_text("changes the displayed order")
    # A poll without changes does not touch the page.
    page.evaluate("document.querySelector('#inbox-live').dataset.untouched = 'yes'")
    with page.expect_response(lambda answer: "/inbox/live/" in answer.url) as poll:
        pass
    assert poll.value.status == 204
    expect(page.locator("#inbox-live")).to_have_attribute("data-untouched", "yes")

    alices.follow("AGENTS.md")
    alices.sees("Revision 2 is in quarantine")
    alices.sees("Revision 1 is live, but no prompt contains it.")
    box = page.locator(".dr-diff-line.is-added .dr-glyph").filter(has_text="U+202E").first
    expect(box).to_be_visible()
    expect(box).to_have_attribute("title", "U+202E RIGHT-TO-LEFT OVERRIDE")
    assert file_at(poisoned.source).active.content.text == GOOD
    # A finding leads to its line.
    page.get_by_role("link", name="Line and column 2:").first.click()
    line = page.locator("#L2")
    expect(line).to_be_in_viewport()
    expect(line.locator(".dr-glyph").first).to_have_text("U+200B")

    alices.go(f"files/{poisoned.pk}/")
    assert alices.press("Allow this content") == 422
    alices.sees_field_error("Reason", "required")
    assert not axe_violations(page)
    until = timezone.now().date() + timedelta(days=3)
    alices.fill(Reason="A quotation of the attack.")
    field(page, "Expires on").fill(until.isoformat())
    alices.press("Allow this content")
    alices.sees_message("allowed until")
    alices.sees("A quotation of the attack.")
    assert file_at(poisoned.source).active.content.text == POISON


def test_a_file_is_approved_from_its_row_and_several_by_bulk_action(bobs: Visit, workspace, root):
    source = make_source_in_every_status(workspace, root)
    bobs.go("inbox/?status=changed")
    bobs.press("Approve changed/AGENTS.md")
    bobs.sees_message("Approved: changed/AGENTS.md.")
    assert "status=changed" in bobs.page.url
    assert file_at(source, "changed/AGENTS.md").status == "current"
    bobs.go("inbox/")
    bobs.page.get_by_label("Select new/AGENTS.md").check()
    bobs.page.get_by_label("Select missing/AGENTS.md").check()
    bobs.press("Approve selected")
    bobs.sees_message("2 files approved.")
    expect(bobs.page.get_by_role("row")).to_have_count(3)


@pytest.mark.hard
def test_live_updates_keep_the_focus_and_the_selection(bobs: Visit, workspace, root):
    source = make_source_in_every_status(workspace, root)
    bobs.go("inbox/")
    bobs.page.get_by_label("Select new/AGENTS.md").check()
    bobs.page.get_by_label("Select changed/AGENTS.md").check()
    focused = bobs.page.get_by_role("button", name="Ignore missing/AGENTS.md")
    focused.focus()
    search = bobs.page.get_by_label("Search by path")
    write(root / "changed/AGENTS.md", "Quite other words.\n")
    write(root / "brand-new/AGENTS.md", GOOD)
    refreshed(source)
    expect(row(bobs, "brand-new/AGENTS.md")).to_be_visible()
    expect(bobs.page.get_by_role("status").filter(has_text="Inbox updated at")).to_be_visible()
    expect(focused).to_be_focused()
    expect(bobs.page.get_by_label("Select new/AGENTS.md", exact=True)).to_be_checked()
    # Its content has changed since it was selected.
    expect(bobs.page.get_by_label("Select changed/AGENTS.md")).not_to_be_checked()
    search.fill("half a wor")
    write(root / "another/AGENTS.md", GOOD)
    refreshed(source)
    expect(row(bobs, "another/AGENTS.md")).to_be_visible()
    expect(search).to_be_focused()
    expect(search).to_have_value("half a wor")


@pytest.mark.hard
def test_an_agents_context_is_chosen_and_follows_the_disk(bobs: Visit, workspace, root):
    source = make_source(workspace, root)
    write(root / "AGENTS.md", GOOD)
    write(root / "docs/AGENTS.md", "Write plainly.\n")
    refreshed(source)
    agent = make_agent(workspace, "pilot")
    bobs.go("agents/pilot/")
    bobs.follow("Context")
    bobs.sees("No source selected yet.")
    field(bobs.page, "Source").first.select_option(label="House files")
    bobs.press("Save")
    bobs.sees_message("Context for Pilot saved.")
    bobs.sees("1 file, 31 characters")

    agent.refresh_from_db()
    choose_context(agent, source, "plain", working_directory="docs", expected=agent.revision, by=BY)
    bobs.go("agents/pilot/context/")
    bobs.page.get_by_text("AGENTS.md", exact=True).click()
    opened = bobs.page.locator("details[open]")
    expect(opened).to_contain_text("Never promise a date.")
    write(root / "docs/AGENTS.md", "Write with <b>care</b>.\n")
    refreshed(source)
    expect(bobs.page.get_by_role("status").filter(has_text="Context updated at")).to_be_visible()
    expect(bobs.page.locator("#context-live")).to_contain_text("Write with <b>care</b>.")
    # What was open and has not changed stays open.
    expect(opened).to_contain_text("Never promise a date.")
    write(root / "AGENTS.md", POISON)
    refreshed(source)
    expect(bobs.page.get_by_role("heading", name="1 file is withheld")).to_be_visible()
    bobs.go("agents/pilot/")
    bobs.sees("1 file is withheld from this agent")


@SOME_OR_ALL
def test_inbox_and_file_pages_are_accessible_at_every_width(alices: Visit, workspace, root, is_all):
    alices.go("inbox/")
    alices.sees("No sources yet")
    problems = axe_violations(alices.page) + find_overflows(alices.page)
    source = make_source_in_every_status(workspace, root)
    paths = [write_skill(root, "tea"), write_skill(root, "tea", folder="docs/")]
    write(root / ("very-long-folder-name-" * 8) / "AGENTS.md", "word" * 300 + "\n" + "שלום " * 60 + POISON)
    refreshed(source)
    approve_file_at(source, paths[0])
    make_skill(workspace, "tea", for_all_agents=True)
    agent = make_agent(workspace, "pilot")
    choose_context(agent, source, "plain", working_directory="quarantined", expected=agent.revision, by=BY)
    states = ("quarantined", "invalid", "missing", "changed", "new")
    files = [file_at(source, f"{state}/AGENTS.md").pk for state in states]
    long = file_at(source, "very-long-folder-name-" * 8 + "/AGENTS.md").pk
    keys = [file_at(source, path).pk for path in paths]
    pages = [
        *("inbox/", "agents/pilot/context/", f"files/{files[0]}/", f"files/{long}/", f"files/{keys[0]}/"),
        f"files/{long}/revisions/1/",
    ]
    if is_all:
        pages += [
            *("inbox/?q=nothing", "agents/pilot/", *(f"files/{key}/" for key in (*files[1:], keys[1]))),
            *(f"files/{files[0]}/revisions/{number}/" for number in (1, 2)),
        ]
    for page in sample(pages):
        assert alices.go(page) == 200
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    assert not problems, "\n\n".join(problems)
