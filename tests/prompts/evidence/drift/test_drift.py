"""Released, served and loaded prompts per bot: statuses, changed lines and events."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from core.text.diff import pair_lines
from personas.api_keys.services import create_key, revoke_key
from personas.errors import InvalidInput
from personas.events.selectors import list_events_after
from prompts.evidence.drift.details import (
    MAX_BLOCKS,
    ChangedBlock,
    find_line_changes,
    parse_report_details,
    report_details_json,
)
from prompts.evidence.drift.loaded_diff import build_loaded_diff
from prompts.evidence.drift.reports import DigestReportResult, LoadedFile, report_digest
from prompts.evidence.drift.selectors import list_bots
from prompts.models import BotStatus, DigestReport
from prompts.publishing.labels.services import roll_back
from prompts.studio.fleet.counts import get_workspace_counts
from tests.factories import BY
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace, "Be brave.\nBe kind.\nBe brief.")


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def load(stage: Stage, text: str, **facts: Any) -> DigestReportResult:
    """Report a text as the bot of the stage does."""
    loaded = LoadedFile(text=text, **facts)
    return report_digest(stage.prompt, digest_of(text), key=stage.key, by=BY, loaded=loaded)


def get_status(stage: Stage) -> BotStatus:
    [bot] = list_bots(stage.workspace)
    return bot.status


def list_drift_events(stage: Stage) -> list[dict[str, Any]]:
    return [event.data for event in list_events_after(stage.workspace, 0) if event.type == "bot.drifted"]


# --- lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loaded", "block"),
    [
        ("a\nB\nc", ChangedBlock(2, 1, 2, 1)),
        ("a\nc", ChangedBlock(2, 0, 2, 1)),
        ("a\nb\nx\nc", ChangedBlock(3, 1, 3, 0)),
        ("a\nb\nc\n", ChangedBlock(4, 1, 4, 0)),
    ],
)
def test_changed_added_and_removed_lines_are_numbered(loaded, block):
    changes = find_line_changes("a\nb\nc", loaded, number=3)
    assert changes is not None
    assert list(changes.blocks) == [block]
    assert changes.is_one_line
    assert find_line_changes(loaded, loaded, number=3) is None


def test_many_changed_blocks_are_counted_and_not_all_stored():
    served = "\n".join(str(number) for number in range(100))
    loaded = "\n".join(str(number) if number % 2 else "x" for number in range(100))
    changes = find_line_changes(served, loaded, number=1)
    assert changes is not None
    assert (len(changes.blocks), changes.more) == (MAX_BLOCKS, 50 - MAX_BLOCKS)


def test_the_diff_numbers_both_sides_and_has_no_loaded_text():
    served, loaded = "a\nb\nc\nd", "a\nsecret\nmore\nc"
    changes = find_line_changes(served, loaded, number=1)
    assert changes is not None
    lines = build_loaded_diff(served, changes)
    numbers = [(old and old.before, new and new.after) for old, new in pair_lines(lines)]
    assert numbers == [(1, 1), (2, 2), (None, 3), (3, 4), (4, None)]
    assert not any("secret" in line.text for line in lines)


# --- statuses ------------------------------------------------------------------------------------------


def test_a_bot_is_unknown_until_it_reports_and_then_the_same(stage):
    served = stage.fetch()
    [bot] = list_bots(stage.workspace)
    assert (bot.status, bot.since, bot.label) == (BotStatus.UNKNOWN, bot.served_at, "production")
    result = load(stage, served.text, path="CLAUDE.md", reason="session_start", session="s-1")
    assert (result.details.status, result.details.changes) == (BotStatus.SAME, None)
    [bot] = list_bots(stage.workspace)
    assert (bot.status, bot.since) == (BotStatus.SAME, result.report.at)
    assert (bot.details.path, bot.details.reason, bot.details.session) == (
        "CLAUDE.md",
        "session_start",
        "s-1",
    )
    assert list_drift_events(stage) == []


def test_a_bot_that_keeps_an_old_version_is_outdated_and_a_fetch_makes_it_unknown(stage):
    first = stage.fetch()
    load(stage, first.text)
    stage.edit("Be careful.")
    assert get_status(stage) == BotStatus.OUTDATED
    second = stage.fetch()
    [bot] = list_bots(stage.workspace)
    assert (bot.status, bot.since) == (BotStatus.UNKNOWN, bot.served_at)
    load(stage, second.text)
    assert get_status(stage) == BotStatus.SAME
    roll_back([stage.prompt], by=BY, note="Too careful")
    assert get_status(stage) == BotStatus.OUTDATED


def test_an_edited_text_was_never_released_and_its_line_is_named(stage):
    served = stage.fetch()
    lines = served.text.split("\n")
    line = lines.index("Be kind.") + 1
    result = load(stage, served.text.replace("Be kind.", "Be rude."))
    assert result.details.status == BotStatus.NEVER_RELEASED
    changes = result.details.changes
    assert changes is not None
    assert (changes.first_line, changes.is_one_line, changes.ledger_id) == (line, True, served.ledger_id)
    assert get_status(stage) == BotStatus.NEVER_RELEASED
    # A later fetch does not overwrite the file.
    stage.fetch()
    assert get_status(stage) == BotStatus.NEVER_RELEASED
    load(stage, served.text)
    assert get_status(stage) == BotStatus.SAME


def test_the_loaded_text_is_not_stored(stage):
    result = load(stage, f"{stage.fetch().text}\nA secret of the user.")
    stored = DigestReport.objects.in_workspace(stage.workspace).values().get(pk=result.report.pk)
    assert "secret" not in str(stored)


def test_a_key_that_was_served_nothing_is_compared_with_the_versions(stage):
    """For example if another key has written the file."""
    text = stage.fetch().text
    other, _ = create_key(stage.workspace, "Desk", {}, by=BY)
    for loaded, status in ((text, BotStatus.SAME), (f"{text}\nMore.", BotStatus.NEVER_RELEASED)):
        result = report_digest(
            stage.prompt, digest_of(loaded), key=other, by=BY, loaded=LoadedFile(text=loaded)
        )
        assert result.details.status == status
        # Short texts could be guessed from a plain digest of a known text.
        assert (result.report.digest == digest_of(loaded)) == (status == BotStatus.NEVER_RELEASED)
    assert result.details.changes is not None
    assert result.details.changes.ledger_id is None


def test_a_text_with_another_digest_is_rejected(stage):
    with pytest.raises(InvalidInput):
        report_digest(stage.prompt, "0" * 64, key=stage.key, by=BY, loaded=LoadedFile(text="Hello."))


def test_stored_details_are_read_as_they_were_written(stage):
    result = load(stage, stage.fetch().text)
    assert parse_report_details(report_details_json(result.details)) == result.details


def test_revoked_keys_and_other_workspaces_are_not_listed(stage, elsewhere):
    load(stage, "Other.")
    assert get_workspace_counts(stage.workspace).never_released == 1
    assert list_bots(elsewhere) == []
    revoke_key(stage.key, by=BY)
    assert list_bots(stage.workspace) == []
    assert get_workspace_counts(stage.workspace).never_released == 0


def test_the_fleet_counts_a_bot_until_its_text_is_restored(stage):
    text = stage.fetch().text
    for loaded, count in (("Other.", 1), ("Another.", 1), (text, 0)):
        load(stage, loaded)
        assert get_workspace_counts(stage.workspace).never_released == count


def test_a_bot_that_reported_long_ago_is_still_listed(stage):
    with time_machine.travel(timezone.now() - timedelta(days=60)):
        load(stage, "Other.")
    assert get_status(stage) == BotStatus.NEVER_RELEASED


def test_bots_take_the_same_number_of_queries_at_any_count(stage, django_assert_max_num_queries):
    load(stage, stage.fetch().text)
    for number in range(5):
        key, _ = create_key(stage.workspace, f"Bot {number}", {}, by=BY)
        report_digest(stage.prompt, "0" * 64, key=key, by=BY)
    with django_assert_max_num_queries(9):
        assert len(list_bots(stage.workspace)) == 6


# --- events --------------------------------------------------------------------------------------------


def test_each_change_of_the_status_is_one_event(stage):
    served = stage.fetch()
    for text in (served.text, "Other.", "Another.", served.text, served.text):
        result = load(stage, text)
    changes = [(one["previous_status"], one["status"]) for one in list_drift_events(stage)]
    assert changes == [("same", "never_released"), ("never_released", "same")]
    stage.edit("Be careful.")
    result = load(stage, served.text)
    assert list_drift_events(stage)[-1] == {
        "agent": "pilot",
        "channel": "deck",
        "label": "production",
        "key_id": stage.key.pk,
        "report_id": result.report.pk,
        "status": "outdated",
        "previous_status": "same",
        "number": 1,
        "current_number": 2,
    }


def test_a_first_report_of_an_unknown_text_is_an_event(stage):
    load(stage, "Other.")
    [data] = list_drift_events(stage)
    assert (data["previous_status"], data["status"], data["number"]) == ("unknown", "never_released", None)
