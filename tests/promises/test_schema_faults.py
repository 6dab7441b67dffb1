"""R2: generated requests detect an API that violates its schema."""

import random
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from schemathesis.checks import load_all_checks

from personas.api.record_resource import RecordResource
from tests.personas.api.generated_requests import (
    GOOD,
    SCHEMA,
    Outcome,
    Stage,
    keep_connection_open,
    run_cases,
)
from tests.personas.api.generated_stage import make_stage

pytestmark = [pytest.mark.django_db, pytest.mark.promise("R2")]
SOULS, CALLS = "GET /api/v1/souls", 5


@pytest.fixture
def stage(workspace, alice, bob, settings) -> Stage:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.1/32"]
    return make_stage(workspace, alice, bob)


def violations(stage: Stage) -> list[str]:
    load_all_checks()
    outcome = Outcome()
    with keep_connection_open():
        schema = schemathesis.openapi.from_wsgi(SCHEMA, get_wsgi_application())
        operations: list[Any] = [one.ok() for one in schema.get_all_operations()]  # type: ignore[union-attr]  # ours
        [operation] = [one for one in operations if one.label == SOULS]
        strategy = operation.as_strategy(generation_mode=GOOD)
        run_cases(stage, outcome, random.Random(1), operation, GOOD, CALLS, 1, strategy)  # noqa: S311  # repeatable
    assert outcome.cases
    return outcome.violations


@pytest.mark.hard
def test_an_api_that_keeps_to_its_schema_passes(stage):
    assert violations(stage) == []


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.parametrize("fault", ["a field is of another kind", "it breaks off"])
def test_a_response_that_violates_the_schema_is_found(stage, monkeypatch, fault):
    to_json = RecordResource.to_json

    def faulty_to_json(self: Any, record: Any) -> dict[str, Any]:
        if fault == "it breaks off":
            raise ZeroDivisionError
        data = to_json(self, record)
        return data | {"revision": str(data["revision"])}

    monkeypatch.setattr(RecordResource, "to_json", faulty_to_json)
    assert violations(stage)
