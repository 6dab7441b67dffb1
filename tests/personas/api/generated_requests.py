"""Calls made up from the schema alone, good and bad, against the real door; each is undone again."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connection, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import load_all_checks
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode

from personas.api import rate_limits
from tests.personas.api.altered_requests import alter

SCHEMA = "/api/v1/openapi.json"
# What is named rightly is found most of the time, so that operations get to do their work.
RIGHT = 0.85
# An operation that was never carried out is tried so many times more.
PATIENCE = 8
GOOD, BAD = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
# How often a call that was made up is asked once more, each time with one thing more put wrong.
ALTERED = {GOOD: 2, BAD: 3}


@dataclass
class Outcome:
    """What was tried and what was wrong with it."""

    cases: int = 0
    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)
    # Operations that were called without a key, and with a wrong one, too: once is enough to know.
    guarded: set[str] = field(default_factory=set)

    @property
    def only_refused(self) -> dict[str, str]:
        """Operations that never once did what they are for, and what was said last."""
        return {
            name: self.last.get(name, "")
            for name, seen in self.statuses.items()
            if not any(status < 400 for status in seen)
        }


@dataclass(frozen=True)
class Stage:
    """A key, and the names of things that are there: by the word in the address or the body."""

    secret: str
    names: Mapping[str, Any]


def run(stage: Stage, each: int, seeds: Sequence[int], *, first: int = 0, in_turn: int = 1) -> Outcome:
    """So many cases made up per operation and seed, two thirds of them good, and each altered a few times; of
    `in_turn` operations only one is tried.

    Making up the first case of a kind takes longer than ten more of it, so an operation gets all its seeds.
    """
    load_all_checks()
    outcome = Outcome()
    with connection_kept():
        schema = schemathesis.openapi.from_wsgi(SCHEMA, get_wsgi_application())
        for found in islice(schema.get_all_operations(), first, None, in_turn):
            operation: Any = found.ok()  # type: ignore[union-attr]  # a document of ours has no others
            for start in seeds:
                try_one(stage, outcome, operation, each, start)
    return outcome


def try_one(stage: Stage, outcome: Outcome, operation: Any, each: int, start: int) -> None:
    # Its own, so that an operation gets the same calls whoever comes before it.
    chance = random.Random(f"{start} {operation.label}")  # noqa: S311  # repeatable is the point
    for mode, count in ((GOOD, each - each // 3), (BAD, each // 3)):
        try_out(stage, outcome, chance, operation, mode, count, start)
    for more in range(1, PATIENCE):
        if operation.label in outcome.only_refused:
            try_out(stage, outcome, chance, operation, GOOD, each, start + more)


@contextmanager
def connection_kept() -> Iterator[None]:
    """Between requests Django lets go of connections, and the tests' transaction would go with it."""
    bells = (request_started, request_finished)
    for bell in bells:
        bell.disconnect(close_old_connections)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # On a busy machine making up a call may take longer than a page may think.
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    try:
        yield
    finally:
        for bell in bells:
            bell.connect(close_old_connections)


def try_out(  # noqa: PLR0917  # one case of many, and all of it differs
    stage: Stage,
    outcome: Outcome,
    chance: random.Random,
    operation: Any,
    mode: GenerationMode,
    count: int,
    start: int,
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
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        if mode is GOOD:
            named_rightly(case, stage.names, chance)
        noted(stage, outcome, case, is_good=mode is GOOD)
        for _ in range(ALTERED[mode]):
            if alter(case, chance):
                noted(stage, outcome, case, is_good=False)

    try:
        one()
    except schemathesis.errors.SchemathesisError:
        # Nothing wrong can be sent to an operation without parameters.
        if mode is GOOD:
            raise


def noted(stage: Stage, outcome: Outcome, case: Any, *, is_good: bool) -> None:
    label = case.operation.label
    outcome.cases += 1
    try:
        status, said = asked(case, stage.secret, EXCLUDED + AGAIN * (label in outcome.guarded))
    except (Failure, FailureGroup) as error:
        outcome.violations.append(f"{label}: {error}"[:2_000])
        return
    outcome.statuses[label][status] += 1
    if 200 <= status < 300:
        outcome.guarded.add(label)
    if is_good:
        outcome.last[label] = f"{case.body!r:.200} → {said:.400}"


def asked(case: Any, secret: str, excluded: list[Any]) -> tuple[int, str]:
    """Ask, hold the answer to the schema, and undo what it did."""
    rate_limits.PROCESS_LIMITER.clear()
    around = transaction.atomic()
    # As the tests' own transaction is marked: to the house it is none.
    around._from_testcase = True  # type: ignore[attr-defined]
    with around:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = case.call(headers=headers)
        case.validate_response(answer, headers=headers, excluded_checks=excluded)
        transaction.set_rollback(True)
    return int(answer.status_code), str(answer.text)


# Rules that no schema tells (a name is taken, a release is closed) refuse data that fits it.
EXCLUDED = [schemathesis.checks.positive_data_acceptance]
AGAIN = [schemathesis.checks.ignored_auth]


def named_rightly(case: Any, names: Mapping[str, Any], chance: random.Random) -> None:
    for name, made_up in (case.path_parameters or {}).items():
        if chance.random() < RIGHT:
            kind = case.path.removeprefix("/api/v1/").partition("/")[0]
            places = (f"{case.path}.{name}", f"{case.method} {case.path}", f"{kind}.{name}", name)
            case.path_parameters[name] = next((names[place] for place in places if place in names), made_up)
    if "If-Match" in (case.headers or {}) and chance.random() < RIGHT:
        case.headers["If-Match"] = "*"
    if isinstance(case.body, dict):
        case.body |= names.get(f"body of {case.method} {case.path}", {})
    if (query := names.get(f"query of {case.method} {case.path}")) and chance.random() < RIGHT:
        case.query = {**(case.query or {}), **query}
    for place in (case.body, case.query):
        if isinstance(place, dict):
            replace(place, case.path, names, chance)


def replace(place: dict[str, Any], path: str, names: Mapping[str, Any], chance: random.Random) -> None:
    for name, value in place.items():
        right = names.get(f"{path} {name}", names.get(f"body.{name}"))
        if right is not None and value is not None and chance.random() < RIGHT:
            place[name] = right
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                replace(item, path, names, chance)
