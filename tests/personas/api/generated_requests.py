"""Property-based API tests: schemathesis generates valid and invalid requests; each is rolled back."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import load_all_checks
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.openapi.checks import UndefinedStatusCode

from personas.api import rate_limits
from project.api.openapi import get_operations
from project.api.problem_responses import get_problem_codes
from project.api.urls import urlpatterns
from tests.personas.api.altered_requests import alter_request
from tests.personas.api.generated_formats import register_formats
from tests.personas.api.rejected_requests import Rejection, list_rejections

SCHEMA = "/api/v1/openapi.json"
# Probability of naming an existing object, so that most requests succeed.
RIGHT = 0.85
# Attempts for an operation that has not succeeded yet.
PATIENCE = 8
GOOD, BAD = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
# Number of further requests per case, each with one more value altered.
ALTERED = {GOOD: 2, BAD: 3}


@schemathesis.serializer("text/markdown")
def serialize_text(context: Any, value: Any) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else str(value).encode()


OPERATIONS = {
    operation.operation_id: (pattern, operation)
    for pattern in urlpatterns
    for operation in get_operations(pattern).values()
}


@dataclass
class Outcome:
    """Counts of requests and statuses, and the violations of the schema."""

    cases: int = 0
    valid: int = 0
    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)
    # Values of valid requests that got 400 or 422.
    rejections: list[Rejection] = field(default_factory=list)
    # Operations whose authentication was checked (no key, wrong key); once per operation is enough.
    guarded: set[str] = field(default_factory=set)

    @property
    def only_refused(self) -> dict[str, str]:
        """Operations that never succeeded, with the last response."""
        return {
            name: self.last.get(name, "")
            for name, statuses in self.statuses.items()
            if not any(status < 400 for status in statuses)
        }


@dataclass(frozen=True)
class Stage:
    """A key, and the values of existing objects by path parameter or body field."""

    secret: str
    names: Mapping[str, Any]


def run(
    stage: Stage,
    each: int,
    seeds: Sequence[int],
    *,
    first: int = 0,
    in_turn: int = 1,
    label: str = "",
    change_document: Callable[[dict[str, Any]], object] | None = None,
) -> Outcome:
    """Run `each` cases per operation and seed, two thirds of them valid, and alter each a few times.

    Only one of `in_turn` operations is tested, or the one with the label. Generating the first case of an
    operation takes longer than ten more, so an operation gets all seeds.
    """
    load_all_checks()
    register_formats()
    outcome = Outcome()
    with keep_connection_open():
        schema = schemathesis.openapi.from_wsgi(SCHEMA, get_wsgi_application())
        if change_document:
            change_document(schema.raw_schema)
        for result in islice(schema.get_all_operations(), first, None, in_turn):
            operation: Any = result.ok()  # type: ignore[union-attr]  # a document of ours has no others
            if label not in {"", operation.label}:
                continue
            # Building a strategy takes longer than the requests of a seed, so all seeds use the same.
            strategies = {mode: operation.as_strategy(generation_mode=mode) for mode in (GOOD, BAD)}
            for start in seeds:
                run_operation(stage, outcome, operation, each, start, strategies)
    return outcome


def run_operation(  # noqa: PLR0917  # one operation of many, and all of it differs
    stage: Stage,
    outcome: Outcome,
    operation: Any,
    each: int,
    start: int,
    strategies: Mapping[GenerationMode, Any],
) -> None:
    # A generator of its own, so that the requests do not depend on the operations tested before.
    chance = random.Random(f"{start} {operation.label}")  # noqa: S311  # repeatable is the point
    for mode, count in ((GOOD, each - each // 3), (BAD, each // 3)):
        run_cases(stage, outcome, chance, operation, mode, count, start, strategies[mode])
    for extra in range(1, PATIENCE):
        if operation.label in outcome.only_refused:
            run_cases(stage, outcome, chance, operation, GOOD, each, start + extra, strategies[GOOD])


@contextmanager
def keep_connection_open() -> Iterator[None]:
    """Keep Django from closing the connection after a request, which would end the test's transaction."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


def run_cases(  # noqa: PLR0917  # one case of many, and all of it differs
    stage: Stage,
    outcome: Outcome,
    chance: random.Random,
    operation: Any,
    mode: GenerationMode,
    count: int,
    start: int,
    strategy: Any,
) -> None:
    outcome.statuses.setdefault(operation.label, Counter())

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def one(case: Any) -> None:
        if mode is GOOD:
            insert_existing_names(case, stage.names, chance)
        record_case(stage, outcome, case, is_good=mode is GOOD)
        for _ in range(ALTERED[mode]):
            if alter_request(case, chance):
                record_case(stage, outcome, case, is_good=False)

    try:
        one()
    except schemathesis.errors.SchemathesisError:
        # An operation without parameters has no invalid requests.
        if mode is GOOD:
            raise


def record_case(stage: Stage, outcome: Outcome, case: Any, *, is_good: bool) -> None:
    label = case.operation.label
    outcome.cases += 1
    try:
        status, text = send_case(case, stage.secret, EXCLUDED + AGAIN * (label in outcome.guarded))
    except (Failure, FailureGroup) as error:
        outcome.violations.append(f"{label}: {error}"[:2_000])
        return
    outcome.statuses[label][status] += 1
    if 200 <= status < 300:
        outcome.guarded.add(label)
    if is_good:
        outcome.valid += 1
        outcome.rejections += list_rejections(case, status, text)
        outcome.last[label] = f"{case.body!r:.200} → {text:.400}"


def send_case(case: Any, secret: str, excluded: list[Any]) -> tuple[int, str]:
    """Send a request, validate the response against the schema, and roll back."""
    rate_limits.PROCESS_LIMITER.clear()
    around = transaction.atomic()
    # Marked like the test's own transaction, so that durable blocks are allowed inside.
    around._from_testcase = True  # type: ignore[attr-defined]
    with around:
        # Schemathesis does not decompress responses of a WSGI application.
        headers = {"Authorization": f"Bearer {secret}", "Accept-Encoding": "identity"}
        answer = case.call(headers=headers)
        if answer.status_code == 412:
            # A failed precondition is a rejection too: If-Match is checked before other values.
            excluded = [*excluded, schemathesis.checks.negative_data_rejection]
        case.validate_response(answer, headers=headers, excluded_checks=excluded)
        check_documented_status(case, answer.status_code)
        transaction.set_rollback(True)
    return int(answer.status_code), str(answer.text)


def check_documented_status(case: Any, status: int) -> None:
    """Raise unless the operation is documented to return this status.

    The document has the common errors in one response, `4XX`.
    """
    pattern, operation = OPERATIONS[case.operation.definition.raw["operationId"]]
    extra_statuses = [extra for extra, _ in operation.extra_responses]
    documented = sorted({operation.status, *extra_statuses, *get_problem_codes(pattern, operation)})
    if status not in documented:
        raise UndefinedStatusCode(
            operation=case.operation.label,
            status_code=status,
            defined_status_codes=[str(code) for code in documented],
            allowed_status_codes=documented,
            message=f"Received {status}, documented: {documented}",
        )


# Rules that a schema cannot express (a name is taken, a release is closed) reject valid data.
EXCLUDED = [schemathesis.checks.positive_data_acceptance]
AGAIN = [schemathesis.checks.ignored_auth]


def insert_existing_names(case: Any, names: Mapping[str, Any], chance: random.Random) -> None:
    for name, generated in (case.path_parameters or {}).items():
        if chance.random() < RIGHT:
            kind = case.path.removeprefix("/api/v1/").partition("/")[0]
            places = (f"{case.path}.{name}", f"{case.method} {case.path}", f"{kind}.{name}", name)
            case.path_parameters[name] = next((names[place] for place in places if place in names), generated)
    if "If-Match" in (case.headers or {}) and chance.random() < RIGHT:
        case.headers["If-Match"] = "*"
    if isinstance(case.body, dict):
        case.body |= names.get(f"body of {case.method} {case.path}", {})
    if (query := names.get(f"query of {case.method} {case.path}")) and chance.random() < RIGHT:
        case.query = {**(case.query or {}), **query}
    for place in (case.body, case.query):
        if isinstance(place, dict):
            replace_names(place, case.path, names, chance)


def replace_names(place: dict[str, Any], path: str, names: Mapping[str, Any], chance: random.Random) -> None:
    for name, value in place.items():
        existing = names.get(f"{path} {name}", names.get(f"body.{name}"))
        # An absent value and an empty list stay, because other fields may require them.
        if existing is not None and value not in (None, []) and chance.random() < RIGHT:
            place[name] = existing
        # Of a list, only the first item gets existing names: most lists must not name an object twice.
        item = value[0] if isinstance(value, list) and value else value
        if isinstance(item, dict):
            replace_names(item, path, names, chance)
