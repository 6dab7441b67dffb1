"""R2: the API conforms to its schema for generated requests."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from personas.models import User, Workspace
from tests.personas.api.generated_requests import Outcome, Stage, run
from tests.personas.api.generated_stage import make_stage

pytestmark = pytest.mark.django_db
# The same requests as in the long test, so that this one does not fail on unrelated changes.
EACH, SEED = 4, 1
# Each run tests one of so many operations, chosen by the seed of pytest-randomly.
IN_TURN = 32
HARD_SEEDS = (20261117, 7741, 44745)
# Number of parallel parts.
PARTS = 4


@pytest.fixture
def stage(workspace: Workspace, alice: User, bob: User, settings: Any) -> Stage:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.1/32"]
    return make_stage(workspace, alice, bob)


def summarize(outcome: Outcome) -> str:
    return f"{outcome.cases:,} cases over {len(outcome.statuses)} operations"


def check_outcome(outcome: Outcome) -> None:
    print(summarize(outcome))
    # References, cursors and ETags that do not exist, and rules that a schema cannot express.
    print("\n".join(f"{count:5} {reason:.150}" for reason, count in outcome.rejections.most_common()))
    violations = "\n\n".join(outcome.violations[:40])
    assert not outcome.violations, f"{len(outcome.violations)} of {outcome.cases}:\n{violations}"
    never = [f"{name}: {response}" for name, response in outcome.only_refused.items()]
    assert not never, "\n".join(never)


def test_generated_requests_conform_to_the_schema(stage: Stage) -> None:
    outcome = run(stage, EACH, [SEED], first=random.randrange(IN_TURN), in_turn=IN_TURN)  # noqa: S311
    check_outcome(outcome)
    assert outcome.cases >= 50


@pytest.mark.promise("R2")
@pytest.mark.hard
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_requests_conform_to_the_schema(
    stage: Stage, part: int, record_property: Callable[[str, object], None]
) -> None:
    outcome = run(stage, EACH, HARD_SEEDS, first=part, in_turn=PARTS)
    record_property("generated calls", outcome.cases)
    check_outcome(outcome)
    assert outcome.cases * PARTS >= 10_000
