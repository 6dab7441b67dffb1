"""R2: the API conforms to its schema for generated requests, and accepts requests that the schema allows."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from personas.models import User, Workspace
from project.api.docs_views import get_openapi_document
from tests.personas.api.generated_formats import FORMATS
from tests.personas.api.generated_requests import Outcome, Stage, run
from tests.personas.api.generated_stage import make_stage
from tests.personas.api.rejected_requests import count_kinds

pytestmark = pytest.mark.django_db
# Always the same requests, so that this test does not fail on unrelated changes.
EACH, SEED = 4, 1
# Each run tests one of so many operations, chosen by the seed of pytest-randomly.
IN_TURN = 32
HARD_SEEDS = tuple(map(int, os.environ.get("DRAMATIS_GENERATED_SEEDS", "20261117 7741 44745").split()))
# Number of parallel parts.
PARTS = 4
STANDARD_FORMATS = frozenset({"date-time", "date", "email", "uri-reference"})
GUIDE = Path(__file__).parents[3] / "docs" / "api.md"


@pytest.fixture
def stage(workspace: Workspace, alice: User, bob: User, settings: Any) -> Stage:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.1/32"]
    return make_stage(workspace, alice, bob)


def summarize(outcome: Outcome) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in count_kinds(outcome.rejections).most_common())
    return (
        f"{outcome.cases:,} cases over {len(outcome.statuses)} operations; of {outcome.valid:,} valid ones, "
        f"values rejected by reason: {kinds or 'none'}"
    )


def check_outcome(outcome: Outcome) -> None:
    print(summarize(outcome))
    violations = "\n\n".join(outcome.violations[:40])
    assert not outcome.violations, f"{len(outcome.violations)} of {outcome.cases}:\n{violations}"
    others = [str(rejection) for rejection in outcome.rejections if not rejection.allowed_kind]
    assert not others, "Valid requests were rejected:\n" + "\n".join(others)
    never = [f"{name}: {response}" for name, response in outcome.only_refused.items()]
    assert not never, "\n".join(never)


@pytest.mark.slow
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


@pytest.mark.planted
def test_a_pattern_that_the_document_lacks_is_detected(stage: Stage) -> None:
    def remove_pattern(document: dict[str, Any]) -> None:
        del document["components"]["schemas"]["FileText"]["pattern"]

    label = "PUT /api/v1/souls/{slug}/file"
    check_outcome(run(stage, 12, [SEED], label=label))
    outcome = run(stage, 12, [SEED], label=label, change_document=remove_pattern)
    with pytest.raises(
        AssertionError, match=r"PUT /api/v1/souls/.* The character U\+.* is not allowed. Value: "
    ):
        check_outcome(outcome)


def list_formats(value: Any) -> Iterator[str]:
    """Yield the formats of a document, or of a part of it."""
    if isinstance(value, dict) and value.get("type") in ("string", ["string", "null"]) and "format" in value:
        yield value["format"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from list_formats(inner)


def test_every_format_of_the_document_is_generated_and_documented() -> None:
    formats = set(list_formats(get_openapi_document())) - STANDARD_FORMATS
    assert formats == set(FORMATS)
    guide = GUIDE.read_text()
    assert [name for name in sorted(formats) if f"| `{name}` |" not in guide] == []
