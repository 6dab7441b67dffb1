"""Requests whose database fails at a statement: nothing of their changes may remain (promise R14).

Every operation and page that writes is sent once to record its statements, and then once for each write with
an error at the statement after it. Errors at other statements would find the same rows written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.contrib.sessions.models import Session
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections

from personas.limits.persons import forget_persons
from tests.isolation import api_matrix, matrix
from tests.isolation.api_cast import Caller, rolled_back_as_test
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.cast import Requester, Stage
from tests.isolation.expectations import INSIDE
from tests.isolation.matrix import Digests, Outcome
from tests.isolation.probe import WRITE, Answer, digest, quick_templates, send_request
from tests.isolation.walk import Route

# The session is saved after the action and its commit, so an error there finds the action done.
SESSION_TABLE = Session._meta.db_table
SAVEPOINT_METHODS = ("_savepoint", "_savepoint_commit")
# Chooses from the positions at which a request can fail.
Choose = Callable[[Sequence[int]], Sequence[int]]
Send = Callable[[], Answer]


class InjectedError(DatabaseError):
    """The error raised instead of running a statement."""


@dataclass
class StatementLog:
    """Counts the statements of a request and notes which of them write; may raise at one of them."""

    fail_at: int = 0
    writes: list[int] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements.append(sql)
        if len(self.statements) == self.fail_at:
            raise InjectedError(sql[:80])
        if (match := WRITE.match(sql)) and match[1] != SESSION_TABLE:
            self.writes.append(len(self.statements))
        return execute(sql, params, many, context)

    @property
    def positions(self) -> list[int]:
        """The statements that follow a write, counted from 1, up to the first that saves the session."""
        sessions = [at for at, sql in enumerate(self.statements) if f'UPDATE "{SESSION_TABLE}"' in sql]
        # The savepoint before it belongs to the session, too.
        end = sessions[-1] if sessions else len(self.statements)
        return [position + 1 for position in self.writes if position < end - 1]


@contextmanager
def logged_statements(fail_at: int = 0) -> Iterator[StatementLog]:
    log = StatementLog(fail_at)
    # Otherwise only the first request would look up whom the workspace counts for, and the statements of
    # the others would have other positions.
    forget_persons()
    with connection.execute_wrapper(log), logged_savepoints(log):
        yield log


@contextmanager
def logged_savepoints(log: StatementLog) -> Iterator[None]:
    """Log savepoints too, which stand for the transactions of the product. PostgreSQL gets them later."""
    wrapper: Any = connections[DEFAULT_DB_ALIAS]
    if wrapper.vendor != "postgresql":
        yield
        return
    for name in SAVEPOINT_METHODS:
        setattr(wrapper, name, partial(log_savepoint, log, name, getattr(wrapper, name)))
    try:
        yield
    finally:
        for name in SAVEPOINT_METHODS:
            delattr(wrapper, name)


def log_savepoint(log: StatementLog, name: str, method: Callable[[str], None], sid: str) -> None:
    log(lambda *_: method(sid), name, (), False, {})


def every_position(positions: Sequence[int]) -> Sequence[int]:
    return positions


def last_positions(positions: Sequence[int]) -> Sequence[int]:
    """The last position and the middle one: most has been written by then."""
    return sorted({positions[-1], positions[len(positions) // 2]}) if positions else []


def run_operations(
    stage: Stage,
    callers: Mapping[str, Caller],
    endpoints: Iterable[ApiEndpoint],
    before: Digests,
    choose: Choose,
) -> Outcome:
    outcome = Outcome()
    for endpoint in endpoints:
        if endpoint.method in api_matrix.WRITES:
            caller = callers["overriding owner" if endpoint.name == "releases-override" else "owner"]
            cell = api_matrix.Cell(caller, endpoint, api_matrix.OWN)
            send = lambda cell=cell: api_matrix.send_cell(stage, cell)[0]  # noqa: E731
            outcome.add(fail_request(stage, caller, str(cell), send, before=before, choose=choose))
    return outcome


def run_pages(
    stage: Stage, requester: Requester, routes: Iterable[Route], before: Digests, choose: Choose
) -> Outcome:
    outcome = Outcome()
    for route in routes:
        page = INSIDE[route.name]
        if page.write is not None:
            cell = matrix.Cell(requester, route, "POST", "own")
            path = matrix.address(stage, cell)
            send = lambda path=path, page=page: send_request(  # noqa: E731
                requester, "POST", path, page.body(stage, requester.home)
            )
            with quick_templates():
                outcome.add(fail_request(stage, requester, str(cell), send, before=before, choose=choose))
    return outcome


def fail_request(
    stage: Stage, requester: Requester, name: str, send: Send, *, before: Digests, choose: Choose
) -> Outcome:
    outcome = Outcome()
    with rolled_back_as_test(), logged_statements() as log:
        send()
    for position in choose(log.positions):
        outcome.cells += 1
        with rolled_back_as_test():
            with logged_statements(position):
                answer = send()
            findings = [] if answer.status >= 500 else [f"got {answer.status}"]
            findings += list_changes(stage, requester.home, answer, before)
        outcome.findings += [f"{name} · statement {position}: {finding}" for finding in findings]
    return outcome


def list_changes(stage: Stage, home: str, answer: Answer, before: Digests) -> list[str]:
    now = digest(stage.workspaces[home], answer.written_tables) if answer.written_tables else {}
    return [f"left changes in {table}" for table, value in now.items() if before[home][table] != value]
