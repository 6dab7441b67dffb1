"""Which checkpoint covers a fetch, and what the evidence says until one does."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.ledger.blocks import SETTLE_DELAY, seal_ledger
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.services import replay_entry
from prompts.models import LedgerEntry
from prompts.proof.evidence import CheckResult
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.django_db
COVERAGE = "checkpoint covers the block"


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace)


@pytest.fixture
def entry(stage: Stage) -> LedgerEntry:
    stage.fetch()
    return stage.rows[-1]


def check_coverage(stage: Stage, entry: LedgerEntry) -> CheckResult:
    bundle: dict[str, Any] = build_evidence(replay_entry(stage.workspace, entry.pk))
    return next(check for check in run_evidence_checks(bundle, None) if check.name == COVERAGE)


def after_settling(entry: LedgerEntry) -> Any:
    return time_machine.travel(entry.at + SETTLE_DELAY + timedelta(seconds=1), tick=False)


def test_the_first_checkpoint_after_the_settle_delay_covers_the_fetch(stage, entry):
    # The job that seals blocks has not run: signing must not depend on it.
    with after_settling(entry):
        sign_checkpoint(stage.workspace.pk)
        assert check_coverage(stage, entry).state == "ok"


def test_a_checkpoint_signed_right_after_a_fetch_is_not_said_to_cover_it(stage, entry):
    assert sign_checkpoint(stage.workspace.pk) is not None
    check = check_coverage(stage, entry)
    assert check.state == "absent"
    # The next checkpoint may come too early as well, so the message names a time.
    assert "after the next checkpoint" not in check.message
    covered_from = entry.at + SETTLE_DELAY
    assert covered_from.strftime("%Y-%m-%dT%H:%M:%S") in check.message
    with after_settling(entry):
        assert sign_checkpoint(stage.workspace.pk) is not None
        assert check_coverage(stage, entry).state == "ok"


def test_a_sealed_fetch_without_a_checkpoint_is_not_covered(stage, entry):
    sign_checkpoint(stage.workspace.pk)
    with after_settling(entry):
        assert seal_ledger(stage.workspace.pk) == 1
        check = check_coverage(stage, entry)
    assert (check.state, check.message) == ("absent", "no checkpoint covers this bundle yet")
