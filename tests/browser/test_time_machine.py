"""The time machine in a browser: an earlier fetch is replayed byte for byte, and its evidence downloaded."""

import json
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from playwright.sync_api import expect

from prompts.evidence.integrity.checkpoint_signer import get_public_key, sign_checkpoint
from prompts.evidence.integrity.services import run_verification
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.evidence.replay.evidence import run_evidence_checks
from prompts.models import VerificationRun
from prompts.proof.canonical import format_timestamp
from prompts.publishing.labels.services import roll_back
from tests.browser.page_checks import SOME_OR_ALL, axe_violations, find_overflows, sample
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.slow

WIDE = "x" * 60


@pytest.fixture
def stage(workspace, settings, tmp_path, monkeypatch) -> Stage:
    """A prompt built an hour ago, with a key to fetch it; fetches can be sealed without delay."""
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    monkeypatch.setattr("prompts.evidence.ledger.blocks.SETTLE_DELAY", -timedelta(seconds=60))
    with time_machine.travel(timezone.now() - timedelta(hours=1)):
        return make_stage(workspace, f"Be brave. {WIDE * 3}")


def seal_and_sign(stage: Stage) -> None:
    seal_ledger(stage.workspace.pk)
    sign_checkpoint(stage.workspace.pk)


def test_an_earlier_fetch_is_replayed_byte_for_byte_and_found_by_time(alices, stage, by_alice, tmp_path):
    early = stage.fetch()
    stage.edit("Be careful instead.")
    late = stage.fetch()
    roll_back([stage.prompt], by=by_alice, note="Too careful")
    seal_and_sign(stage)

    alices.go("time-machine/")
    alices.page.get_by_role("textbox", name="Request").fill(early.request_id)
    alices.press("Show prompt")
    alices.sees("Verified. This is exactly what was served")
    alices.sees(early.served_digest)
    alices.download("Download text", tmp_path / "early.md")
    assert (tmp_path / "early.md").read_bytes() == early.text.encode()

    alices.download("Download evidence", tmp_path / "evidence.json")
    data = json.loads((tmp_path / "evidence.json").read_text())
    assert {check.state for check in run_evidence_checks(data, get_public_key()[0])} == {"ok"}

    alices.follow("Verify")
    alices.sees("Text rebuilt")
    expect(alices.page.get_by_label("Failed")).to_have_count(0)

    alices.go(f"time-machine/fetches/{late.ledger_id}/")
    alices.sees("Be careful instead.")
    alices.follow("Compare with current version")
    alices.sees("would be served now for the same call")
    expect(alices.page.locator(".dr-diff-line.is-removed").first).to_contain_text("careful")

    # A past time is searched by agent and channel.
    alices.go("time-machine/")
    page = alices.page
    page.get_by_role("combobox", name="Agent").select_option(label="Pilot")
    page.get_by_role("combobox", name="Channel").select_option(label="Deck")
    first = stage.prompt.versions.get(number=1)
    page.get_by_role("textbox", name="Date and time").fill(
        f"{first.created_at + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}"
    )
    alices.press("Show prompt")
    alices.sees("pointed to version 1")
    assert "/time-machine/prompts/" in page.url
    alices.page.get_by_role("link", name="Next change").click()
    alices.sees("pointed to version 2")

    # The list of outdated bots loads by itself.
    alices.go("ledger/")
    expect(alices.page.get_by_role("complementary")).to_contain_text("but production points to version 1")


@SOME_OR_ALL
def test_time_machine_pages_are_accessible(alices, stage, workspace, by_alice, is_all):
    served = stage.fetch()
    stage.edit(f"Be careful. {WIDE}")
    roll_back([stage.prompt], by=by_alice, note="Too careful")
    seal_and_sign(stage)
    alices.go("verify/")
    alices.press("Verify now")
    run = VerificationRun.objects.in_workspace(workspace).get()
    # A worker left running by another test may be faster; the verification runs once.
    run_verification(workspace.pk, run.pk)
    # The page polls for the result.
    alices.sees("Verified: no tampering found")
    problems = axe_violations(alices.page) + find_overflows(alices.page)
    paths = (
        "time-machine/",
        "time-machine/?request=never",
        f"time-machine/fetches/{served.ledger_id}/?check=all",
        f"time-machine/prompts/{stage.prompt.pk}/latest/{format_timestamp(timezone.now())}/",
        "ledger/?agent=pilot&version=3",
        "ledger/outdated/",
    )
    for path in sample(paths):
        alices.go(path)
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    assert not problems, "\n\n".join(problems)


@pytest.mark.hard
def test_the_time_machine_works_without_script(alice, workspace, stage, logged_in_page):
    served = stage.fetch()
    page = logged_in_page(alice, java_script_enabled=False)
    page.goto(f"/w/{workspace.slug}/time-machine/")
    page.get_by_role("textbox", name="Request").fill(served.request_id)
    page.get_by_role("button", name="Show prompt").click()
    expect(page.get_by_role("main")).to_contain_text(served.served_digest)
    page.goto(f"/w/{workspace.slug}/ledger/")
    page.get_by_role("link", name="View").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Outdated bots")
