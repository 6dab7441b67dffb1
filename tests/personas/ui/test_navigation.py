"""The sidebar marks the page to which the open one belongs."""

import pytest

from personas.ui.navigation import build_navigation

pytestmark = pytest.mark.django_db


def list_current(workspace, path: str) -> list[str]:
    groups = build_navigation(workspace, f"/w/{workspace.slug}/{path}")
    return [str(link.label) for group in groups for link in group.items if link.is_current]


@pytest.mark.parametrize(
    ("path", "current"),
    [
        ("", ["Fleet"]),
        ("agents/pilot/", ["Agents"]),
        ("prompts/1/versions/2/", ["Agents"]),
        ("quick-start/", ["Agents"]),
        ("inbox/", ["Inbox"]),
        ("files/3/", ["Inbox"]),
        ("ledger/outdated/", ["Ledger"]),
        ("bots/", ["Ledger"]),
        ("prompt-settings/", ["Prompt settings"]),
        ("settings/", ["Workspace settings"]),
        ("rebuilding/", []),
    ],
)
def test_the_current_page_is_marked(workspace, path, current):
    assert list_current(workspace, path) == current
