"""Scheduled jobs on Citus, with all nodes and while one is lost.

These tests need TEST_DATABASE=citus; tests/citus/test_suite.py runs them so.
"""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from personas.tenancy.lost_nodes import list_unreachable_workspaces
from project.metrics.gauges import collect_gauges
from project.metrics.periodic import measure_metrics
from prompts.evidence.integrity import lag
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger import blocks
from prompts.models import Checkpoint, LedgerBlock
from tests.citus.outage import lost_worker, run_scheduled_jobs
from tests.prompts.serving.serving_stage import Stage
from tests.pytest_servers import get_citus_cluster

pytestmark = [
    pytest.mark.hard,
    pytest.mark.skipif(
        get_citus_cluster() is None, reason="run by tests/citus/test_suite.py if there is a Citus"
    ),
]


@pytest.fixture(autouse=True)
def no_delay(monkeypatch):
    """Seal rows and sign checkpoints at once."""
    monkeypatch.setattr(blocks, "SETTLE_DELAY", timedelta())
    monkeypatch.setattr(lag, "SIGN_INTERVAL", timedelta())


# pytest-django creates the database only if a test asks for it with this mark.
@pytest.mark.django_db
def test_workspaces_are_on_both_workers(stages):
    assert len(stages) == 2
    assert list_unreachable_workspaces() == set()


def test_every_scheduled_job_runs(stages, transactional_connection):
    for stage in stages.values():
        stage.fetch()
    with capture_logs() as logs:
        assert run_scheduled_jobs() == {}
    assert [line for line in logs if line["log_level"] in ("warning", "error")] == []
    for stage in stages.values():
        assert find_newest_sealed(stage) == stage.rows[-1].pk
        assert is_newest_signed(stage)
    assert measure_metrics()["prompts"] >= len(stages)


@pytest.mark.parametrize("number", [0, 1])
def test_scheduled_jobs_go_on_without_the_workspaces_of_a_lost_worker(stages, number, monkeypatch):
    for stage in stages.values():
        stage.edit(f"Be quick without {number}.")
        stage.fetch()
    monkeypatch.setattr(blocks, "SETTLE_DELAY", timedelta())
    monkeypatch.setattr(lag, "SIGN_INTERVAL", timedelta())
    with lost_worker(number) as lost, capture_logs() as logs:
        [kept] = set(stages) - {lost}
        assert run_scheduled_jobs() == {}
        assert find_newest_sealed(stages[kept]) == stages[kept].rows[-1].pk
        assert is_newest_signed(stages[kept])
        families = {family.name: family for family in collect_gauges()}
        unreachable = families["dramatis_database_unreachable_workspaces"].samples[0].value
        assert unreachable == len(list_unreachable_workspaces()) > 0
        parts = {sample.labels["part"]: sample.value for sample in families["dramatis_up"].samples}
        assert parts["database"] == 1
    assert {line["skipped"] for line in logs if line["event"] == "workspaces_skipped"} == {unreachable}
    assert [line["nodes"] for line in logs if line["event"] == "ledger_partitions_deferred"] == [[lost]]
    assert run_scheduled_jobs() == {}
    assert find_newest_sealed(stages[lost]) == stages[lost].rows[-1].pk
    for stage in stages.values():
        assert verify_workspace(stage.workspace).first is None


def find_newest_sealed(stage: Stage) -> int:
    last = LedgerBlock.objects.in_workspace(stage.workspace).order_by("-sequence").first()
    return last.last_id if last else 0


def is_newest_signed(stage: Stage) -> bool:
    last = Checkpoint.objects.in_workspace(stage.workspace).order_by("-sequence").first()
    block = LedgerBlock.objects.in_workspace(stage.workspace).order_by("-sequence").first()
    return bool(last and block and last.body["ledger"]["sequence"] == block.sequence)
