"""Comments on a memory and on a line of a version, seen by another member without a reload."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from personas.models import Workspace
from prompts.models import AgentPrompt, Comment
from prompts.publishing.builds.services import rebuild_agents
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.users import Visit
from tests.factories import make_agent, make_channel, make_memory, make_soul

pytestmark = pytest.mark.slow


@pytest.fixture
def prompt(workspace: Workspace) -> AgentPrompt:
    soul = make_soul(workspace, text="Be brave.")
    agent = make_agent(workspace, "careful", soul=soul, channels=[make_channel(workspace, "deck")])
    rebuild_agents(workspace, [agent.pk])
    return AgentPrompt.objects.in_workspace(workspace).get()


def test_a_comment_on_a_memory_appears_on_an_open_page_and_keeps_what_is_typed(
    alices: Visit, bobs: Visit, workspace: Workspace
):
    memory = make_memory(workspace, text="The reef moved.")
    for visit in (alices, bobs):
        visit.go(f"memories/{memory.pk}/")
    alices.page.locator("#comments textarea").fill("half a sentence")
    bobs.page.locator("#comments textarea").fill("Which reef?")
    bobs.press("Comment")
    expect(alices.page.locator("#comments")).to_contain_text("Which reef?")
    expect(alices.page.locator("#comments textarea")).to_have_value("half a sentence")
    assert axe_violations(alices.page) + find_overflows(alices.page) == []
    expect(alices.page.locator("#comments")).not_to_contain_text("Delete comment")
    bobs.press("Delete comment")
    expect(alices.page.locator("#comments")).to_contain_text("No comments yet.")
    expect(alices.page.locator("#comments textarea")).to_have_value("half a sentence")


def test_a_line_of_a_version_is_commented_on_from_its_row(bobs: Visit, prompt: AgentPrompt):
    bobs.go(reverse("versions:detail", args=[bobs.slug, prompt.pk, 1]))
    row = bobs.page.locator(".dr-said-row").filter(has_text="Be brave.")
    row.hover()
    bobs.leave_by(row.locator(".dr-comment-link"))
    line = int(bobs.page.locator("#comments [name=line]").input_value())
    bobs.page.locator("#comments textarea").fill("Brave, how?")
    bobs.press("Comment")
    expect(bobs.page.locator("#comment-list")).to_contain_text("Be brave.")
    expect(bobs.page.locator("#comment-list")).to_contain_text("Brave, how?")
    assert Comment.objects.in_workspace(prompt.workspace_id).get().line == line
    assert axe_violations(bobs.page) + find_overflows(bobs.page) == []
