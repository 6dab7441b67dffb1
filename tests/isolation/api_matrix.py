"""The API isolation matrix: every operation, called with every key, for own, foreign and missing rows."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from personas.roles import has_permission
from tests.isolation.api_cast import UNKNOWN, Caller, rolled_back_as_test
from tests.isolation.api_policy import is_for_bots, is_open_with, permission_for, verb_for
from tests.isolation.api_probe import call
from tests.isolation.api_rows import Row
from tests.isolation.api_table import TABLE, known_endpoints
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.cast import ELSEWHERE, HARBOUR, Stage
from tests.isolation.matrix import Digests, Outcome, digests, leaks
from tests.isolation.probe import Answer, digest

OWN, CROSSED, MISSING = "own", "crossed", "missing"
WRITES = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Cell:
    """One API call; `target` may name the single parameter that is foreign or missing."""

    caller: Caller
    endpoint: ApiEndpoint
    target: str
    method: str = ""

    @property
    def row(self) -> Row:
        return TABLE[str(self.endpoint)]

    def __str__(self) -> str:
        return (
            f"{self.caller.name} · {self.method or self.endpoint.method} {self.endpoint.name} · {self.target}"
        )


# --- selection of cells --------------------------------------------------------------------------------


# Decides for a cell and the number of its operation whether this run includes it.
IsDue = Callable[[Cell, int], bool]
# Invalid keys are all rejected alike: each operation is called with one of them.
INVALID = tuple(name for name in UNKNOWN if name != "no key")
# Limited keys: every other operation is called with one of each group.
LIMITED = (
    ("admin", "editor", "reviewer", "viewer"),
    ("reading bot", "fetching bot", "reading owner", "narrow owner", "narrow bot", "overriding owner"),
    ("owner on channels", "owner of labels", "bot on channels", "bot of labels"),
)


def every_cell(cell: Cell, number: int) -> bool:
    return True


def one_in_turn(turn: int) -> IsDue:
    """Select the cells of one run: each operation as owner, without a key and with an invalid key.

    The others rotate.
    """

    def is_due(cell: Cell, number: int) -> bool:
        position, name = number + turn, cell.caller.name
        if cell.method:
            return position % 12 == 0
        if cell.caller.home == ELSEWHERE:
            # Both workspaces have the same rows, so a sample is enough.
            return position % 8 == 0
        if cell.target not in {OWN, CROSSED} and position % 3:
            # Missing and foreign rows must look alike; a sample of the operations checks it.
            return False
        if name in INVALID:
            return INVALID[position % len(INVALID)] == name
        if name == "bot":
            return position % 4 == 0 or (is_for_bots(cell.endpoint) and cell.target == OWN)
        group = next((names for names in LIMITED if name in names), None)
        return group is None or (group[position % len(group)] == name and position // len(group) % 2 == 0)

    return is_due


def cells(caller: Caller, endpoints: Iterable[ApiEndpoint], is_due: IsDue = every_cell) -> Iterator[Cell]:
    numbers = endpoint_numbers()
    for endpoint in endpoints:
        candidates = [Cell(caller, endpoint, target) for target in targets(caller, endpoint)]
        if endpoint.method == "GET" and caller.name in {"owner", "no key", "bot"}:
            candidates.append(Cell(caller, endpoint, OWN, "HEAD"))
        yield from (cell for cell in candidates if is_due(cell, numbers[str(endpoint)]))


@cache
def endpoint_numbers() -> dict[str, int]:
    """Number the operations; the numbers do not depend on which operations are selected."""
    return {str(endpoint): number for number, endpoint in enumerate(known_endpoints())}


# Callers that also request missing rows; the result for an operation holds for the others.
THOROUGH = {"owner", "bot", "narrow bot", "narrow owner", "owner on channels", "owner of elsewhere"}


def targets(caller: Caller, endpoint: ApiEndpoint) -> list[str]:
    """List the targets worth testing: a caller without permission is rejected before any row is read."""
    names = list(TABLE[str(endpoint)].names)
    if not names:
        return [OWN]
    if not may_call(caller, endpoint):
        return [OWN, CROSSED] if caller.name in {"no key", "fetching bot", "viewer"} else [OWN]
    if caller.name not in THOROUGH:
        return [OWN, CROSSED]
    # Where a URL names two rows, either of them may be the foreign one.
    is_split = caller.name == "owner" and len(names) > 1
    single = [f"{kind} {name}" for name in names for kind in (CROSSED, MISSING)] if is_split else []
    return [OWN, CROSSED, MISSING, *single]


def may_call(caller: Caller, endpoint: ApiEndpoint) -> bool:
    """Whether the key has the permission and the verb that the operation requires."""
    if not caller.home or (caller.is_bot and not is_for_bots(endpoint)):
        return False
    verb = verb_for(endpoint)
    if verb and verb not in caller.verbs:
        return False
    return caller.is_bot or has_permission(caller.role, permission_for(endpoint))


def expected_statuses(cell: Cell) -> set[int]:
    """The correct statuses, usually one."""
    caller, row = cell.caller, cell.row
    if not caller.home:
        return {401}
    if not may_call(caller, cell.endpoint):
        return {403}
    if cell.target == OWN:
        return {own_status(caller, cell.endpoint, row)}
    # A limited key may be rejected before the row is looked up, or after.
    is_refused = narrow_status(caller, row) == 403 or (caller.is_bot and row.others.get(caller.name) == 403)
    if is_refused or not is_open(caller, cell.endpoint):
        return {403, 404}
    # A channel in the query is always that of the own workspace.
    is_channel_refused = "channels" in caller.limits and not row.query
    return {row.beyond} if caller.is_narrow or is_channel_refused else {404}


def is_open(caller: Caller, endpoint: ApiEndpoint) -> bool:
    return is_open_with(endpoint, caller.limits, is_bot=caller.is_bot)


def own_status(caller: Caller, endpoint: ApiEndpoint, row: Row) -> int:
    if not is_open(caller, endpoint):
        return 403
    refused = narrow_status(caller, row) or (row.bots if caller.is_bot else 0)
    return refused or row.others.get(caller.name, 201 if row.creates else endpoint.operation.status)


def narrow_status(caller: Caller, row: Row) -> int:
    return row.narrow if caller.is_narrow else 0


# --- requests ------------------------------------------------------------------------------------------


def address(stage: Stage, cell: Cell) -> str:
    """Build the URL; parameters that are not varied name rows of the caller's own workspace."""
    caller, row = cell.caller, cell.row
    path, home = cell.endpoint.path({**row.values, **row_parameters(stage, cell)}), caller.home or HARBOUR
    return f"{path}?{urlencode(row.query(stage, home))}" if row.query else path


def row_parameters(stage: Stage, cell: Cell) -> dict[str, str]:
    """The URL parameters that name rows."""
    home, (kind, _, single) = cell.caller.home or HARBOUR, cell.target.partition(" ")
    values = {}
    for name, word in cell.row.names.items():
        varied = kind != OWN and single in {"", name}
        values[name] = word(stage, cell.caller.away if varied else home)
        if varied and kind == MISSING:
            values[name] = cell.endpoint.absent(name, len(values[name]))
    return values


def send_cell(stage: Stage, cell: Cell, body: Any = None) -> tuple[Answer, str]:
    """Send the request of a cell; return the result and everything the caller sent."""
    home, row = cell.caller.home or HARBOUR, cell.row
    if body is None and row.body:
        body = row.body(stage, home)
    path = address(stage, cell)
    headers = {"If-Match": row.if_match} if cell.endpoint.operation.is_conditional else {}
    answer = call(cell.caller, cell.method or cell.endpoint.method, path, body, headers)
    return answer, f"{path} {body}"


def run(
    stage: Stage,
    caller: Caller,
    endpoints: Iterable[ApiEndpoint],
    before: Digests | None = None,
    is_due: IsDue = every_cell,
) -> Outcome:
    """Run the cells of one caller."""
    outcome, refusals, before = Outcome(), Refusals(), before or digests(stage)
    for _, group in groupby(cells(caller, endpoints, is_due), key=lambda cell: cell.endpoint):
        with rolled_back_as_test():
            for cell in group:
                # Reads need no savepoint of their own; what they break is rolled back with the operation.
                with rolled_back_as_test() if cell.endpoint.method in WRITES else nullcontext():
                    outcome.cells += 1
                    findings = check(stage, cell, refusals, before)
                    outcome.findings += [f"{cell}: {finding}" for finding in findings]
    outcome.findings += [f"{caller.name} · {finding}" for finding in refusals.findings()]
    return outcome


def check(stage: Stage, cell: Cell, refusals: "Refusals", before: Digests) -> list[str]:
    # Computed before the request: afterwards the row may be deleted.
    values = row_parameters(stage, cell)
    answer, sent = send_cell(stage, cell)
    statuses = expected_statuses(cell)
    findings = leaks(stage, cell.caller, answer, sent)
    if answer.status not in statuses:
        findings.append(f"expected {min(statuses)}, got {answer.status}{error_text(answer)}")
    is_allowed = min(statuses) < 400
    findings += changes(stage, cell.caller, answer, before, is_allowed=is_allowed)
    is_control = is_allowed and cell.endpoint.method in WRITES and cell.row.changes
    if is_control and answer.status in statuses and not answer.wrote_tenant_rows:
        findings.append("was allowed and changed nothing: the positive control is empty")
    refusals.keep(cell, answer, values)
    return findings


def error_text(answer: Answer) -> str:
    body = answer.response.content.decode(errors="replace") if answer.status >= 400 else ""
    return f" {body[:300]}"


def changes(stage: Stage, caller: Caller, answer: Answer, before: Digests, *, is_allowed: bool) -> list[str]:
    """Find forbidden changes: rows of other workspaces never change, own rows not by a rejected request."""
    if not answer.wrote_tenant_rows:
        return []
    homes = [home for home in stage.workspaces if home != caller.home or not is_allowed]
    return [
        f"changed {table} of {home}"
        for home in homes
        for table, now in digest(stage.workspaces[home], answer.written_tables).items()
        if before[home][table] != now
    ]


class Refusals:
    """Compares the responses for foreign and missing rows: a difference reveals what exists."""

    def __init__(self) -> None:
        self.shapes: dict[tuple[str, str], str] = {}

    def keep(self, cell: Cell, answer: Answer, values: Mapping[str, str]) -> None:
        """Store the response without the values that the caller sent."""
        if not cell.method:
            shape = answer.shape
            for value in values.values():
                shape = (
                    re.sub(rf"(No [a-z ]+) {value}\b", r"\1 …", shape)
                    if value.isdigit()
                    else shape.replace(value, "…")
                )
            # The body contains the value that the caller sent.
            shape = re.sub(r"'Content-Length': '\d+'", "", shape)
            self.shapes[str(cell.endpoint), cell.target] = shape

    def findings(self) -> list[str]:
        findings = []
        for (endpoint, target), shape in self.shapes.items():
            other = self.shapes.get((endpoint, target.replace(CROSSED, MISSING)), shape)
            if target.startswith(CROSSED) and other != shape:
                findings.append(f"{endpoint}: {target} and missing can be told apart: {shape} · {other}")
        return findings


# --- unsupported methods -------------------------------------------------------------------------------


def run_other_methods(
    stage: Stage, callers: Mapping[str, Caller], endpoints: Iterable[ApiEndpoint], before: Digests
) -> Outcome:
    """Call methods that a URL does not support: 405 for every caller, and no changes."""
    outcome = Outcome()
    by_name: dict[str, list[ApiEndpoint]] = {}
    for endpoint in endpoints:
        by_name.setdefault(endpoint.name, []).append(endpoint)
    for offered in by_name.values():
        supported = {endpoint.method for endpoint in offered}
        unsupported = [method for method in (*WRITES, "OPTIONS") if method not in supported]
        for number, method in enumerate(unsupported):
            caller = callers[("owner", "bot", "no key")[number % 3]]
            cell = Cell(caller, offered[0], OWN, method)
            with rolled_back_as_test():
                outcome.cells += 1
                answer, sent = send_cell(stage, cell)
                findings = leaks(stage, caller, answer, sent)
                findings += changes(stage, caller, answer, before, is_allowed=False)
                findings += [f"expected 405, got {answer.status}"] if answer.status != 405 else []
                outcome.findings += [f"{cell}: {finding}" for finding in findings]
    return outcome
