"""The page of loaded prompts in a browser: an edit of a bot's file by hand appears without a reload."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.windows import PATIENCE_MS
from tests.clients.test_claude_code import write_connection
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.slow

HOOK = Path(__file__).parents[2] / "clients" / "claude-code" / "hooks" / "report_loaded.py"


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace, "Be brave.\nBe kind.")


def test_a_file_edited_by_hand_is_never_released_within_seconds(alices, stage, live_server, tmp_path):
    edit_file_of_bot(alices, stage, live_server, tmp_path)


def edit_file_of_bot(alices, stage, live_server, tmp_path, wait_ms=PATIENCE_MS):
    """Report a file, edit it by hand and report it again; the page shows each report without a reload."""
    text, file = stage.fetch().text, tmp_path / "CLAUDE.md"
    line = text.split("\n").index("Be kind.") + 1
    alices.go("bots/")
    page = alices.page
    status = page.get_by_role("row").filter(has_text="Reception")
    expect(status).to_contain_text("Unknown")
    for content, expected in ((text, "Same"), (text.replace("Be kind.", "Be rude."), "Never released")):
        start_session(stage, live_server.url, file, content)
        expect(status).to_contain_text(expected, timeout=wait_ms)
    expect(status).to_contain_text(f"Line {line} differs")
    problems = axe_violations(page) + find_overflows(page)

    alices.leave_by(page.get_by_role("link", name="Reception"))
    alices.sees(f"Line {line} differs")
    expect(page.locator(".dr-diff-half.is-removed")).to_contain_text("Be kind.")
    problems += axe_violations(page) + find_overflows(page)

    alices.go("bots/")
    start_session(stage, live_server.url, file, text)
    expect(status).to_contain_text("Same", timeout=wait_ms)
    assert not problems, "\n\n".join(problems)


@pytest.mark.hard
@pytest.mark.planted
def test_a_page_that_does_not_notice_new_reports_is_detected(
    alices, stage, live_server, tmp_path, monkeypatch
):
    monkeypatch.setattr("prompts.evidence.drift.views.get_newest_report_id", lambda workspace: 0)
    with pytest.raises(AssertionError, match="Same"):
        edit_file_of_bot(alices, stage, live_server, tmp_path, wait_ms=5_000)


def start_session(stage: Stage, url: str, file: Path, content: str) -> None:
    """Write the file and run the hook, as a new session of Claude Code does."""
    file.write_bytes(content.encode())
    home = file.parent.parent / "home"
    write_connection(home, url, stage.secret)
    environment = {
        "PATH": os.environ["PATH"],
        "CLAUDE_PROJECT_DIR": str(file.parent),
        "HOME": str(home),
        "DRAMATIS_AGENT": "pilot",
        "DRAMATIS_CHANNEL": "deck",
    }
    event = {"session_id": "abc123", "file_path": str(file), "load_reason": "session_start"}
    done = subprocess.run(
        [sys.executable, HOOK],
        input=json.dumps(event),
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
