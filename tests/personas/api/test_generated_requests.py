"""R2: the API does what its schema says, whatever is sent."""

import random
from collections.abc import Callable

import pytest

from personas.models import User, Workspace
from tests.personas.api.generated_requests import Outcome, Stage, run
from tests.personas.api.generated_stage import make_stage

pytestmark = pytest.mark.django_db
# The same calls as in the long proof, so that nothing new comes up where a change is tried.
EACH, SEED = 6, 1
# Of so many operations each run tries one; which, pytest-randomly's seed says.
IN_TURN = 16
HARD_SEEDS = (1, 2, 3)
# Beside each other.
PARTS = 4


@pytest.fixture
def stage(workspace: Workspace, alice: User, bob: User) -> Stage:
    return make_stage(workspace, alice, bob)


def told(outcome: Outcome) -> str:
    return f"{outcome.cases:,} cases over {len(outcome.statuses)} operations"


def refuse_wrong(outcome: Outcome) -> None:
    print(told(outcome))
    wrong = "\n\n".join(outcome.violations[:40])
    assert not outcome.violations, f"{len(outcome.violations)} of {outcome.cases}:\n{wrong}"
    never = [f"{name}: {said}" for name, said in outcome.only_refused.items()]
    assert not never, "\n".join(never)


def test_generated_calls_are_answered_as_the_schema_says(stage: Stage) -> None:
    outcome = run(stage, EACH, [SEED], first=random.randrange(IN_TURN), in_turn=IN_TURN)  # noqa: S311
    refuse_wrong(outcome)
    assert outcome.cases >= 100


@pytest.mark.promise("R2")
@pytest.mark.hard
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_calls_are_answered_as_the_schema_says(
    stage: Stage, part: int, record_property: Callable[[str, object], None]
) -> None:
    outcome = run(stage, EACH, HARD_SEEDS, first=part, in_turn=PARTS)
    record_property("generated calls", outcome.cases)
    refuse_wrong(outcome)
    assert outcome.cases * PARTS >= 10_000
