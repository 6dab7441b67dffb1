"""The doctor and the metrics show how much of the daily quota of call data is used."""

import pytest
from django.utils import timezone

from personas.limits.daily_usage import get_utc_day
from personas.limits.storage_quota import reserve_bytes
from project.doctor.checks import check_call_quota
from project.doctor.results import FindingState
from project.metrics.periodic import measure_call_storage

pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("stopped_clock")
def test_a_workspace_near_its_quota_is_named(workspace, elsewhere, settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 1_000
    today = get_utc_day(timezone.now())
    reserve_bytes(elsewhere.pk, today, 100, 1_000)
    assert [one.state for one in check_call_quota()] == [FindingState.OK]
    reserve_bytes(workspace.pk, today, 900, 1_000)
    [finding] = check_call_quota()
    assert finding.state == FindingState.WARN
    assert workspace.slug in finding.message
    assert elsewhere.slug not in finding.message
    assert measure_call_storage() == {"call_bytes_today": 1_000, "call_quota_share": 0.9}


def test_an_absent_quota_is_a_warning(settings):
    settings.DRAMATIS_CALL_BYTES_PER_DAY = 0
    assert [one.state for one in check_call_quota()] == [FindingState.WARN]
    assert measure_call_storage()["call_quota_share"] == 0


@pytest.mark.usefixtures("stopped_clock")
def test_the_ledger_page_shows_what_was_used_today(as_alice, workspace):
    reserve_bytes(workspace.pk, get_utc_day(timezone.now()), 3 * 1024, 2**30)
    page = as_alice.get(f"/w/{workspace.slug}/ledger/").content.decode()
    assert "Calls have stored 3 KiB of data today. The daily quota is 1 GiB." in page
