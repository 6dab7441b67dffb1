"""What is stored of a call: only what the layout uses, each value once, and not without limit."""

import json
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import time_machine
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from core.salted_digests import salt_digest
from personas.limits import storage_quota as quota
from personas.limits.daily_usage import delete_old_counters, get_utc_day
from personas.models import DailyStorage
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.services import replay_entry
from prompts.models import CallContent, LedgerEntry
from prompts.proof.evidence import is_evidence_valid
from prompts.serving.call_contents.retention import delete_unused_call_contents
from prompts.serving.call_contents.selectors import get_call_values
from prompts.serving.call_contents.services import CACHED_DIGESTS
from prompts.serving.call_slots import MAX_CALL_SIZE
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.prompts.serving.fetch_urls"),
    pytest.mark.usefixtures("stopped_clock"),
]
RENDER = "/api/v1/agents/pilot/channels/deck/prompt:render"
LONG_TEXT = "Answer in the words of the harbour. " * 60


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def render(stage: Stage, status: int = 200, **body: Any) -> Any:
    response = Client().post(
        RENDER,
        json.dumps(body),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {stage.secret}",
    )
    assert response.status_code == status, response.content[:500]
    return response


def list_contents(stage: Stage) -> list[CallContent]:
    return list(CallContent.objects.in_workspace(stage.workspace).order_by("pk"))


def get_stored_bytes(stage: Stage) -> int:
    return quota.get_stored_today(stage.workspace.pk)


# --- only what the layout uses -------------------------------------------------------------------------


def test_messages_come_back_and_are_not_stored(stage):
    messages = [{"content": "x" * 4_900, "role": "user"}] * 200
    data = render(stage, messages=messages).json()
    assert data["messages"] == messages
    assert set(data["slots"]) == set(stage.rows[-1].slots) == {"now", "zone"}
    assert get_stored_bytes(stage) == 0


def test_slots_without_a_place_are_named_and_not_stored(stage):
    stage.change_layout("ptc")
    response = render(stage, append=LONG_TEXT, host={"os": "linux"}, working_directory="/srv")
    data = response.json()
    assert [warning for warning in data["warnings"] if "slots." in warning or "directory" in warning] == [
        "The layout does not use working_directory.",
        "The layout does not use slots.host.",
        "The layout does not use slots.append.",
    ]
    assert response["Dramatis-Unplaced"] == "working_directory, host, append"
    assert set(stage.rows[-1].slots) == {"now", "zone"}
    assert list_contents(stage) == []


def test_a_call_whose_fields_all_have_a_place_has_no_header_about_others(stage):
    assert "Dramatis-Unplaced" not in render(stage, append="Be brief.")


# --- long values ---------------------------------------------------------------------------------------


def test_a_long_value_is_stored_once_however_often_it_is_sent(stage):
    texts = [render(stage, append=LONG_TEXT).json()["text"] for _ in range(3)]
    assert all(LONG_TEXT.strip() in text for text in texts)
    long, short = sorted(list_contents(stage), key=lambda content: -content.size)
    named = {"append": long.digest, "values": short.digest}
    assert [row.slots["contents"] for row in stage.rows] == [named] * 3
    assert json.loads(bytes(long.data or b"")) == LONG_TEXT


def test_short_values_are_stored_together_and_the_row_has_only_the_time(stage):
    render(stage, append="Be brief.", host={"os": "linux"})
    [content] = list_contents(stage)
    row = stage.rows[-1]
    assert set(row.slots) == {"now", "contents"}
    assert row.slots["contents"] == {"values": content.digest}
    values = json.loads(bytes(content.data or b""))
    assert values == {"append": "Be brief.", "host": {"os": "linux"}, "zone": "UTC"}
    assert get_call_values(row) == values | {"now": row.slots["now"]}


def test_a_value_has_a_salted_digest(stage):
    render(stage, append="Be brief.")
    [content] = list_contents(stage)
    plain = sha256(bytes(content.data or b"")).hexdigest()
    assert content.plain_digest == plain
    assert content.digest == salt_digest(plain, content.salt or "") != plain


def test_the_response_has_the_whole_values(stage):
    assert render(stage, append=LONG_TEXT).json()["slots"]["append"] == LONG_TEXT


def test_a_replay_of_a_call_with_long_values_gives_the_same_bytes(stage):
    data = render(stage, append=LONG_TEXT, host={"os": "linux", "note": "n" * 2_000}).json()
    replay = replay_entry(stage.workspace, data["ledger_id"])
    assert replay.is_exact
    assert replay.text == data["text"]


def test_the_evidence_has_the_long_values_and_is_valid(stage):
    data = render(stage, append=LONG_TEXT).json()
    bundle = build_evidence(replay_entry(stage.workspace, data["ledger_id"]))
    results = {result.name: result for result in run_evidence_checks(bundle, None)}
    assert is_evidence_valid(results.values())
    assert results["slot values match their digests"].state == "ok"
    assert results["text rebuilt"].state == "ok"


def test_a_changed_long_value_in_the_evidence_is_found(stage):
    data = render(stage, append=LONG_TEXT).json()
    bundle = build_evidence(replay_entry(stage.workspace, data["ledger_id"]))
    digest = bundle["slots"]["contents"]["append"]
    bundle["slot_contents"][digest] = json.dumps("Other words")
    results = {result.name: result.state for result in run_evidence_checks(bundle, None)}
    assert results["slot values match their digests"] == "failed"
    assert results["text rebuilt"] == "failed"


def test_a_digest_in_the_evidence_is_covered_by_the_seal(stage):
    data = render(stage, append=LONG_TEXT).json()
    bundle = build_evidence(replay_entry(stage.workspace, data["ledger_id"]))
    bundle["slots"]["contents"]["append"] = "0" * 64
    results = {result.name: result.state for result in run_evidence_checks(bundle, None)}
    assert results["slots match the ledger"] == "failed"


def test_without_its_long_value_a_row_is_still_proved_but_not_replayed(stage):
    data = render(stage, append=LONG_TEXT).json()
    rows = CallContent.objects.in_workspace(stage.workspace).filter(size__gt=1_000)
    rows.update(data=None, salt=None, plain_digest=None, erased_at=timezone.now())
    replay = replay_entry(stage.workspace, data["ledger_id"])
    assert "append" in replay.problem
    results = {result.name: result.state for result in run_evidence_checks(build_evidence(replay), None)}
    assert "failed" not in results.values()
    assert results["slot values match their digests"] == "absent"
    assert results["ledger seal"] == "ok"


@pytest.mark.slow
def test_a_changed_or_missing_long_value_is_found_by_verification(stage):
    render(stage, append=LONG_TEXT)
    assert verify_workspace(stage.workspace).first is None
    rows = CallContent.objects.in_workspace(stage.workspace)
    rows.update(data=b'"Other words"')
    assert "does not match its digest" in str(verify_workspace(stage.workspace).first)
    rows.delete()
    assert "it is missing" in str(verify_workspace(stage.workspace).first)


# --- the size of one call ------------------------------------------------------------------------------


def test_a_call_that_is_too_large_is_refused_with_the_field_and_the_limit(stage):
    host = {"os": ["x" * 1_000 for _ in range(70)]}
    problem = render(stage, 422, host=host, append="Be brief.").json()
    [error] = problem["errors"]
    assert error["pointer"] == "/host"
    assert f"{MAX_CALL_SIZE:,} bytes" in error["detail"]
    assert stage.rows == []


def test_a_call_just_below_the_limit_is_stored(stage):
    render(stage, append="x" * 19_000, host={"os": "y" * 40_000})
    assert stage.rows[-1].status == 200


# --- the daily quota -----------------------------------------------------------------------------------


def test_beyond_the_daily_quota_calls_with_data_are_refused_until_midnight(stage, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 5_000
    with time_machine.travel("2026-03-07T22:00:00Z", tick=False):
        stage = make_valid(stage)
        render(stage, append="first " + LONG_TEXT)
        render(stage, append="second " + LONG_TEXT)
        response = render(stage, 429, append="third " + LONG_TEXT)
        problem = response.json()
        assert (problem["code"], response["Retry-After"]) == ("call_quota_exceeded", "7200")
        assert "5,000 bytes" in problem["detail"]
        assert "DRAMATIS_CALL_BYTES_PER_DAY" in problem["detail"]
        assert len(stage.rows) == 2
        # Two long values, and the name of the time zone.
        assert len(list_contents(stage)) == 3
    with time_machine.travel("2026-03-08T00:00:01Z", tick=False):
        render(stage, append="third " + LONG_TEXT)


def make_valid(stage: Stage) -> Stage:
    """Give the key a validity that includes the past time of the test."""
    type(stage.key).objects.in_workspace(stage.workspace).update(expires_at="2027-01-01T00:00:00Z")
    return stage


def test_calls_without_data_are_served_when_the_quota_is_used_up(stage, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 10
    render(stage, 429, append="Be brief.")
    render(stage)
    render(stage, messages=[{"content": "Hello"}])
    assert stage.fetch().status == 200


@pytest.mark.slow
def test_a_value_that_is_already_stored_takes_no_further_bytes(stage, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 10_000
    for _ in range(20):
        render(stage, append=LONG_TEXT)
    assert len(LONG_TEXT) < get_stored_bytes(stage) < 2 * len(LONG_TEXT) + 20 * 200


def test_two_processes_together_do_not_exceed_the_quota(stage, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 10_000
    processes = [quota.QuotaReservations(), quota.QuotaReservations()]
    taken = 0
    for number in range(400):
        try:
            processes[number % 2].take(stage.workspace.pk, 70)
        except quota.CallQuotaExceeded:
            continue
        taken += 70
    assert 9_000 < taken <= 10_000
    assert get_stored_bytes(stage) <= 10_000


def test_most_calls_need_no_statement_for_the_quota(stage, django_assert_num_queries):
    reservations = quota.QuotaReservations()
    reservations.take(stage.workspace.pk, 100)
    with django_assert_num_queries(0):
        for _ in range(1_000):
            reservations.take(stage.workspace.pk, 200)


def test_the_quota_of_one_workspace_does_not_touch_another(stage, elsewhere, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 1_000
    reservations = quota.QuotaReservations()
    reservations.take(stage.workspace.pk, 1_000)
    with pytest.raises(quota.CallQuotaExceeded):
        reservations.take(stage.workspace.pk, 1)
    reservations.take(elsewhere.pk, 1_000)


def test_without_a_quota_bytes_are_counted_and_not_limited(stage, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 0
    quota.QuotaReservations().take(stage.workspace.pk, 10**12)
    assert get_stored_bytes(stage) == 10**12


def test_the_default_quota_is_one_gibibyte():
    assert django_settings.DRAMATIS_CALL_BYTES_PER_DAY == 2**30


# --- retention -----------------------------------------------------------------------------------------


def test_contents_are_deleted_when_no_row_can_refer_to_them(stage):
    render(stage, append=LONG_TEXT)
    render(stage, append="Other: " + LONG_TEXT)
    unused, *used = list_contents(stage)
    old = timezone.now().date() - timedelta(days=3)
    CallContent.objects.in_workspace(stage.workspace).filter(pk=unused.pk).update(last_used_on=old)
    assert delete_unused_call_contents(stage.workspace.pk) == 1
    assert list_contents(stage) == used


def test_contents_stay_as_long_as_the_oldest_row_may_refer_to_them(stage):
    render(stage, append=LONG_TEXT)
    contents = list_contents(stage)
    later = timezone.now() + timedelta(days=90)
    with time_machine.travel(later):
        make_valid(stage)
        assert delete_unused_call_contents(stage.workspace.pk) == 0
    assert LedgerEntry.objects.in_workspace(stage.workspace).count() == 1
    assert list_contents(stage) == contents


def test_a_value_that_is_used_again_is_marked_with_the_day(stage):
    render(stage, append=LONG_TEXT)
    rows = CallContent.objects.in_workspace(stage.workspace)
    rows.update(last_used_on=timezone.now().date() - timedelta(days=30))
    CACHED_DIGESTS.clear()
    render(stage, append=LONG_TEXT)
    assert {row.last_used_on for row in rows.all()} == {get_utc_day(timezone.now())}


def test_counters_of_past_days_are_deleted(stage):
    today = get_utc_day(timezone.now())
    for age in (0, 89, 91):
        quota.reserve_bytes(stage.workspace.pk, today - timedelta(days=age), 10, 100)
    assert delete_old_counters() == 1
    assert DailyStorage.objects.in_workspace(stage.workspace).count() == 2
