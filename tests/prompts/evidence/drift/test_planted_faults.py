"""Each fault in the comparison of released, served and loaded prompts is detected by a test."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db.models import QuerySet

from personas.models import ApiKey
from prompts.evidence.drift import details, reports, selectors
from prompts.evidence.drift.selectors import Bot
from prompts.models import BotStatus, DigestReport
from tests.prompts.evidence.drift import test_drift, test_drift_pages
from tests.prompts.evidence.drift.test_drift import stage  # noqa: F401  # a fixture
from tests.prompts.serving.serving_stage import Stage

pytestmark = [pytest.mark.django_db, pytest.mark.planted]
Plant = Callable[[pytest.MonkeyPatch], None]


def call_unknown_texts_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selectors, "compare_loaded_version", lambda released, loaded: BotStatus.SAME)


def compare_numbers_of_versions(patch: pytest.MonkeyPatch) -> None:
    """A rolled back label points to an older version, which is not as new as the loaded one."""

    def compare(released: Any, loaded: Any) -> BotStatus:
        if loaded is None:
            return BotStatus.NEVER_RELEASED
        is_same = released is not None and loaded.number >= released.number
        return BotStatus.SAME if is_same else BotStatus.OUTDATED

    patch.setattr(selectors, "compare_loaded_version", compare)


def keep_superseded_reports(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bot, "is_report_superseded", False)


def store_the_text(patch: pytest.MonkeyPatch) -> None:
    real, texts = reports.check_text_digest, list[str | None]()

    def remember(digest: str, text: str | None) -> None:
        real(digest, text)
        texts.append(text)

    patch.setattr(reports, "check_text_digest", remember)
    patch.setattr(
        reports, "report_details_json", lambda one: {**details.report_details_json(one), "text": texts[-1]}
    )


def count_lines_from_zero(patch: pytest.MonkeyPatch) -> None:
    real = details.find_line_changes

    def find(*texts: str, **facts: Any) -> Any:
        changes = real(*texts, **facts)
        if changes is None:
            return None
        blocks = [block._replace(line=block.line - 1) for block in changes.blocks]
        return details.LineChanges(blocks, changes.more, changes.number, changes.ledger_id)

    patch.setattr(reports, "find_line_changes", find)


def record_each_report(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reports, "get_stored_status", lambda report: BotStatus.UNKNOWN)


def list_revoked_keys(patch: pytest.MonkeyPatch) -> None:
    def list_reports(workspace: int, now: datetime) -> QuerySet[DigestReport]:
        keys = ApiKey.objects.in_workspace(workspace).filter(expires_at__gt=now)
        return DigestReport.objects.in_workspace(workspace).filter(key__in=keys.values("pk")).order_by()

    patch.setattr(selectors, "list_active_reports", list_reports)


FAULTS: dict[Plant, Callable[[Stage], None]] = {
    call_unknown_texts_the_same: test_drift.test_an_edited_text_was_never_released_and_its_line_is_named,
    compare_numbers_of_versions: (
        test_drift.test_a_bot_that_keeps_an_old_version_is_outdated_and_a_fetch_makes_it_unknown
    ),
    keep_superseded_reports: (
        test_drift.test_a_bot_that_keeps_an_old_version_is_outdated_and_a_fetch_makes_it_unknown
    ),
    store_the_text: test_drift.test_the_loaded_text_is_not_stored,
    count_lines_from_zero: test_drift.test_an_edited_text_was_never_released_and_its_line_is_named,
    record_each_report: test_drift.test_each_change_of_the_status_is_one_event,
}


@pytest.mark.parametrize("plant", FAULTS)
def test_a_fault_in_the_comparison_is_detected(stage, monkeypatch, plant):  # noqa: F811  # a fixture
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        FAULTS[plant](stage)


def test_revoked_keys_in_the_list_are_detected(stage, elsewhere, monkeypatch):  # noqa: F811  # a fixture
    list_revoked_keys(monkeypatch)
    with pytest.raises(AssertionError):
        test_drift.test_revoked_keys_and_other_workspaces_are_not_listed(stage, elsewhere)


def test_a_text_whose_digest_is_not_checked_is_detected(stage, monkeypatch):  # noqa: F811  # a fixture
    monkeypatch.setattr(reports, "check_text_digest", lambda digest, text: None)
    with pytest.raises(pytest.fail.Exception):
        test_drift.test_a_text_with_another_digest_is_rejected(stage)


def test_a_live_part_that_is_always_sent_is_detected(as_bob, stage, monkeypatch):  # noqa: F811  # a fixture
    monkeypatch.setattr("prompts.evidence.drift.views.get_newest_report_id", lambda workspace: -1)
    with pytest.raises(AssertionError):
        test_drift_pages.test_the_live_part_is_sent_only_after_a_new_report(as_bob, stage)
