"""End to end: an edit, its impact, a release by two users, a fetch, a rollback, a replay."""

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.models import User, Workspace
from personas.roles import Role
from prompts.evidence.integrity.services import run_verification
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel, VerificationRun
from prompts.publishing.releases.services import approve_release, request_release, run_release
from tests.browser.conftest import Visitor
from tests.browser.users import Visit
from tests.factories import BY, join, make_agent, make_channel, make_soul, make_user
from tests.prompts.serving.serving_stage import fetch

pytestmark = pytest.mark.slow

OLD, NEW = "Be brave.", "Be brave, and say “ahoy” — naïvely, if you must. ⚓"


@pytest.fixture
def rita(workspace: Workspace) -> User:
    """A reviewer: may approve, but not edit."""
    reviewer = make_user("Rita")
    join(workspace, reviewer, Role.REVIEWER)
    return reviewer


@pytest.fixture
def ritas(logged_in_page: Visitor, rita: User, workspace: Workspace) -> Visit:
    return Visit(logged_in_page(rita), workspace.slug)


@pytest.fixture
def crew(workspace: Workspace, rita: User) -> None:
    """A reviewed agent on two channels and an automatic one share a soul; all of it is in production."""
    soul = make_soul(workspace, text=OLD)
    deck, bridge = make_channel(workspace, "deck"), make_channel(workspace, "bridge")
    make_agent(workspace, "pilot", soul=soul, channels=[deck, bridge], release_policy="reviewed")
    make_agent(workspace, "cook", soul=soul, channels=[deck])
    prompts = list(AgentPrompt.objects.in_workspace(workspace).filter(agent__slug="pilot"))
    release = request_release(workspace, prompts, message="First words", by=BY)
    approve_release(release, by=Actor.person(rita))
    run_release(release, by=BY)


@pytest.fixture
def visits(alices: Visit, bobs: Visit, ritas: Visit) -> tuple[Visit, Visit, Visit]:
    """Each user in their own browser."""
    return alices, bobs, ritas


@pytest.fixture
def sealed_at_once(settings, tmp_path, monkeypatch) -> None:
    """Seal ledger rows without waiting for the settle delay."""
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    monkeypatch.setattr("prompts.evidence.ledger.blocks.SETTLE_DELAY", -timedelta(seconds=60))


def production(slug: str) -> list[int]:
    rows = PromptLabel.unscoped.filter(name=PRODUCTION, prompt__agent__slug=slug)
    return sorted(rows.values_list("version__number", flat=True))


def edit_after_preview(alices: Visit) -> None:
    """Edit a soul, check the preview of its impact, then save."""
    alices.go("souls/calm/edit/")
    alices.fill(Text=NEW)
    alices.page.get_by_role("button", name="Preview impact").click()
    panel = alices.page.get_by_role("region", name="Impact")
    expect(panel).to_contain_text("3 prompts for 2 agents, 1 unique change")
    expect(panel).to_contain_text("naïvely")
    assert production("cook") == [1]
    alices.press("Save")
    alices.sees_message("3 prompts rebuilt.")


def release_by_two(alices: Visit, bobs: Visit, ritas: Visit) -> None:
    """Release a change: the requester and editors cannot approve it, a reviewer can."""
    alices.go("releases/new/?agent=pilot")
    alices.fill(Message="Say ahoy")
    alices.press("Request release of all listed prompts (2)")
    alices.sees_message("Release 2 requested.")
    alices.sees("A member other than the requester must approve this release")
    for visit in (alices, bobs):
        visit.go("releases/2/")
        expect(visit.page.get_by_role("button", name="Approve")).to_have_count(0)
        expect(visit.page.get_by_role("button", name="Release 2 prompts")).to_have_count(0)
    assert production("pilot") == [1, 1]
    ritas.go("releases/2/")
    ritas.sees("naïvely")
    ritas.press("Approve")
    ritas.sees_message("Release 2: approved.")
    assert production("pilot") == [1, 1]
    alices.go("releases/2/")
    alices.press("Release 2 prompts to production")
    alices.sees_message("Release 2: released.")
    assert production("pilot") == [2, 2]


def roll_back(alices: Visit) -> None:
    alices.go("agents/pilot/versions/?channel=deck")
    alices.fill(Reason="Guests are startled.")
    alices.press("Roll back to version 1")
    alices.sees_message("Rolled back production to version 1")
    assert production("pilot") == [1, 2]


def download_replay(alices: Visit, request_id: str, path: Path) -> bytes:
    """Download the text that the time machine shows for a request."""
    alices.go("time-machine/")
    alices.page.get_by_role("textbox", name="Request").fill(request_id)
    alices.press("Show prompt")
    alices.sees("Verified. This is exactly what was served")
    alices.download("Download text", path)
    return path.read_bytes()


def without_time(text: str) -> str:
    """The text before the time of the request, which may be another minute."""
    beginning, mark, _ = text.partition("<now>")
    assert mark
    return beginning


@pytest.mark.hard
def test_a_served_prompt_is_replayed_byte_for_byte_after_a_rollback(
    visits, crew, sealed_at_once, workspace, tmp_path
):
    alices, bobs, ritas = visits
    _, secret = create_key(workspace, "Reception", {}, by=BY)
    before = fetch(secret)
    edit_after_preview(alices)
    assert without_time(fetch(secret).text) == without_time(before.text), (
        "Nothing reaches a bot before it is released."
    )
    release_by_two(alices, bobs, ritas)
    released = fetch(secret)
    assert (released.number, NEW in released.text) == (2, True)

    roll_back(alices)
    after = fetch(secret)
    assert (after.number, without_time(after.text)) == (1, without_time(before.text))

    assert download_replay(alices, released.request_id, tmp_path / "released.md") == released.text.encode()
    alices.sees(released.served_digest)
    alices.sees("Reception")
    assert download_replay(alices, before.request_id, tmp_path / "before.md") == before.text.encode()

    seal_ledger(workspace.pk)
    alices.go("verify/")
    alices.press("Verify now")
    run_verification(workspace.pk, VerificationRun.objects.in_workspace(workspace).get().pk)
    alices.sees("Verified: no tampering found")
