"""The page of loaded prompts, its live part, the page of a report, and the count on the fleet page."""

from hashlib import sha256

import pytest

from prompts.evidence.drift.reports import LoadedFile, report_digest
from prompts.models import DigestReport
from tests.factories import BY
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace, "Be brave.\nBe kind.")


def load(stage: Stage, text: str) -> DigestReport:
    digest = sha256(text.encode()).hexdigest()
    loaded = LoadedFile(path="CLAUDE.md", text=text)
    return report_digest(stage.prompt, digest, key=stage.key, by=BY, loaded=loaded).report


def test_without_bots_the_page_says_so(as_bob, workspace):
    assert "No bots yet" in as_bob.get(f"/w/{workspace.slug}/bots/").content.decode()


def test_bots_are_listed_and_filtered_by_status(as_bob, stage):
    url = f"/w/{stage.workspace.slug}/bots/"
    text = stage.fetch().text
    assert "Unknown" in as_bob.get(url).content.decode()
    load(stage, text.replace("Be kind.", "Be rude."))
    page = as_bob.get(url).content.decode()
    assert f"Line {text.split(chr(10)).index('Be kind.') + 1} differs" in page
    assert "CLAUDE.md" in page
    assert "Reception" in as_bob.get(f"{url}?status=never_released").content.decode()
    assert "Reception" not in as_bob.get(f"{url}?status=same").content.decode()
    assert as_bob.get(f"{url}?status=nonsense").status_code == 200


def test_the_live_part_is_sent_only_after_a_new_report(as_bob, stage):
    url = f"/w/{stage.workspace.slug}/bots/live/"
    first = load(stage, "Other.")
    assert as_bob.get(f"{url}?seen={first.pk}").status_code == 204
    load(stage, "Another.")
    assert "Never released" in as_bob.get(f"{url}?seen={first.pk}").content.decode()


def test_a_report_shows_the_served_lines_that_were_replaced(as_bob, stage):
    text = stage.fetch().text
    report = load(stage, text.replace("Be kind.", "Be rude."))
    page = as_bob.get(f"/w/{stage.workspace.slug}/bots/reports/{report.pk}/").content.decode()
    assert "Never released" in page
    assert "Be kind." in page
    assert "Be rude." not in page


def test_a_report_of_an_old_version_shows_the_differences(as_bob, stage):
    report = load(stage, stage.fetch().text)
    url = f"/w/{stage.workspace.slug}/bots/reports/{report.pk}/"
    assert "The released version is loaded" in as_bob.get(url).content.decode()
    stage.edit("Be brave.\nBe careful.")
    page = as_bob.get(url).content.decode()
    assert "Outdated" in page
    assert "careful" in page


def test_a_report_without_text_shows_that_lines_are_unknown(as_bob, stage):
    report = report_digest(stage.prompt, "0" * 64, key=stage.key, by=BY).report
    page = as_bob.get(f"/w/{stage.workspace.slug}/bots/reports/{report.pk}/").content.decode()
    assert "The loaded text matches no version" in page


def test_the_fleet_page_links_to_bots_with_a_text_that_was_never_released(as_bob, stage):
    load(stage, "Other.")
    page = as_bob.get(f"/w/{stage.workspace.slug}/").content.decode()
    assert "bot with a prompt that was never released" in page
    assert "bots/?status=never_released" in page
