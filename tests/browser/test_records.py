"""Every kind of record, from its first page to its restored revision, in a browser."""

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import expect

from tests.browser.users import Visit
from tests.factories import make_agent

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Kind:
    """Form input that creates a record of this kind, and the field that is changed later."""

    path: str
    one: str
    filled: dict[str, str]
    label: str
    before: str
    after: str = "Changed by hand"
    archive_labels: tuple[str, str, str] = field(default=("Archive", "Archived", "Restore"))

    def __str__(self) -> str:
        return self.one.replace(" ", "-")


KINDS = [
    Kind("agents", "agent", {"Name": "Pilot", "Slug": "pilot"}, "Instructions", "Steer gently."),
    Kind(
        "identities",
        "identity",
        {"Name": "Fox", "Emoji": "🦊", "Display name": "Mira"},
        "Vibe",
        "Quick and kind",
    ),
    Kind("souls", "soul", {"Name": "Calm"}, "Text", "Never hurry."),
    Kind(
        "user-profiles", "user profile", {"Name": "Guest", "Time zone": "Europe/Rome"}, "Notes", "Likes tea."
    ),
    Kind(
        "responsibilities",
        "responsibility",
        {"Agent": "Keeper", "Title": "Keep the log"},
        "Text",
        "Write down every ship.",
    ),
    Kind(
        "memories",
        "memory",
        {"Visible to": "Keeper", "Source": "The harbour master"},
        "Text",
        "High water is at six.",
        archive_labels=("Revoke", "Revoked", "Reinstate"),
    ),
    Kind(
        "tasks",
        "task",
        {"Title": "Paint the boat", "Steps": "Sand\n[x] Buy paint"},
        "Description",
        "In blue.",
    ),
    Kind(
        "tools",
        "tool",
        {"Name": "read_tide", "One-line snippet": "Reads the tide"},
        "Description",
        "Asks a gauge.",
    ),
    Kind("channels", "channel", {"Name": "Radio", "Slug": "radio"}, "Formatting rules", "Say over."),
    Kind(
        "skills",
        "skill",
        {"Name": "knots", "Description": "Ties knots."},
        "Instructions",
        "Start with a loop.",
    ),
]


def open_menu(visit: Visit) -> None:
    """Open the menu with an agent's less common actions; other records have no menu."""
    menu = visit.page.locator(".dr-agent-actions summary")
    if menu.count():
        menu.click()


# Agents use every kind of page: links, actions, file export. The other kinds share these pages.
REPRESENTATIVE = {"agents"}
PARAMS = [pytest.param(kind, marks=() if kind.path in REPRESENTATIVE else pytest.mark.hard) for kind in KINDS]


@pytest.mark.parametrize("kind", PARAMS, ids=str)
def test_a_record_is_created_edited_archived_and_restored(kind, bobs, workspace):
    make_agent(workspace, "keeper")
    bobs.go(f"{kind.path}/")
    bobs.follow(f"New {kind.one}")
    bobs.fill(**kind.filled, **{kind.label: kind.before})
    bobs.press(f"Create {kind.one}")
    bobs.sees_message("created")
    bobs.sees(kind.before)

    bobs.follow("Edit")
    bobs.fill(**{kind.label: kind.after})
    bobs.press("Save")
    bobs.sees_message("saved")
    bobs.sees(kind.after)

    archive, archived, restore = kind.archive_labels
    card = bobs.page.get_by_role("region", name="Agent summary")
    heading = card if kind.path == "agents" else bobs.page.get_by_role("heading", level=1)
    open_menu(bobs)
    bobs.press(archive)
    expect(heading).to_contain_text(archived)
    bobs.press(restore)
    bobs.sees_message("Restored")
    expect(heading).not_to_contain_text(archived)

    open_menu(bobs)
    bobs.follow("History")
    bobs.follow("Revision 1")
    bobs.press("Restore this revision")
    bobs.sees_message("Revision 1 restored")
    bobs.sees(kind.before)
    if kind.path != "agents":
        bobs.sees("Restored revision 1")


@pytest.mark.hard
def test_an_archived_record_leaves_the_list_and_is_found_by_the_filter(bobs, workspace):
    make_agent(workspace, "keeper")
    bobs.go("agents/keeper/")
    open_menu(bobs)
    bobs.press("Archive")
    bobs.go("agents/")
    bobs.sees("Nothing here yet")
    bobs.choose_filter("Show", "Archived")
    bobs.follow("Keeper")
    bobs.press("Restore")
    bobs.sees_message("Restored")
