"""The cells of the API: every operation, called with every key, for rows of its own, of others, of nobody."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from personas.roles import has_permission
from tests.isolation.api_cast import UNKNOWN, Caller, unnoticed
from tests.isolation.api_policy import is_for_bots, permission_for, verb_for
from tests.isolation.api_probe import call
from tests.isolation.api_table import TABLE, Row, known_doors
from tests.isolation.api_walk import Door
from tests.isolation.cast import ELSEWHERE, HARBOUR, Stage
from tests.isolation.matrix import Digests, Outcome, digests, leaks
from tests.isolation.probe import Answer, digest

OWN, CROSSED, MISSING = "own", "crossed", "missing"
WRITES = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Cell:
    """One call; `target` may name the one parameter that is not one's own."""

    caller: Caller
    door: Door
    target: str
    method: str = ""

    @property
    def row(self) -> Row:
        return TABLE[str(self.door)]

    def __str__(self) -> str:
        return f"{self.caller.name} · {self.method or self.door.method} {self.door.name} · {self.target}"


# --- what is asked -------------------------------------------------------------------------------------


# Says of a cell and the number of its operation whether that is asked.
IsDue = Callable[[Cell, int], bool]
# Alike in what they meet: keys that open nothing, at each operation one of them.
SPENT = tuple(name for name in UNKNOWN if name != "no key")
# Keys that open a part: at every other operation one of each group.
LIMITED = (
    ("admin", "editor", "reviewer", "viewer"),
    ("reading bot", "fetching bot", "reading owner", "narrow owner", "narrow bot"),
)


def every_cell(cell: Cell, number: int) -> bool:
    return True


def one_in_turn(turn: int) -> IsDue:
    """Each operation is met in every run by its owner, without a key and with a spent one; more in turn."""

    def is_due(cell: Cell, number: int) -> bool:
        place, name = number + turn, cell.caller.name
        if cell.method:
            return place % 12 == 0
        if cell.caller.home == ELSEWHERE:
            # The houses are alike, so a part of it is enough.
            return place % 8 == 0
        if cell.target not in {OWN, CROSSED} and place % 3:
            # What is missing looks as what is theirs; that it does is asked at a part of the operations.
            return False
        if name in SPENT:
            return SPENT[place % len(SPENT)] == name
        if name == "bot":
            return place % 4 == 0 or (is_for_bots(cell.door) and cell.target == OWN)
        group = next((names for names in LIMITED if name in names), None)
        return group is None or (group[place % len(group)] == name and place // len(group) % 2 == 0)

    return is_due


def cells(caller: Caller, doors: Iterable[Door], is_due: IsDue = every_cell) -> Iterator[Cell]:
    numbers = door_numbers()
    for door in doors:
        asked = [Cell(caller, door, target) for target in targets(caller, door)]
        if door.method == "GET" and caller.name in {"owner", "no key", "bot"}:
            asked.append(Cell(caller, door, OWN, "HEAD"))
        yield from (cell for cell in asked if is_due(cell, numbers[str(door)]))


@cache
def door_numbers() -> dict[str, int]:
    """A number for each operation, the same whichever of them are asked for."""
    return {str(door): number for number, door in enumerate(known_doors())}


# Those who look for missing rows too; what they learn of an operation holds for the others.
THOROUGH = {"owner", "bot", "narrow bot", "narrow owner", "owner of elsewhere"}


def targets(caller: Caller, door: Door) -> list[str]:
    """All that tells something new: whoever is turned away at the gate learns nothing of any row."""
    names = list(TABLE[str(door)].names)
    if not names:
        return [OWN]
    if not opens(caller, door):
        return [OWN, CROSSED] if caller.name in {"no key", "fetching bot", "viewer"} else [OWN]
    if caller.name not in THOROUGH:
        return [OWN, CROSSED]
    # Where an address names two rows, each of them may be the foreign one.
    is_split = caller.name == "owner" and len(names) > 1
    single = [f"{kind} {name}" for name in names for kind in (CROSSED, MISSING)] if is_split else []
    return [OWN, CROSSED, MISSING, *single]


def opens(caller: Caller, door: Door) -> bool:
    """Whether this key may do that at all."""
    if not caller.home or (caller.is_bot and not is_for_bots(door)):
        return False
    verb = verb_for(door)
    if verb and verb not in caller.verbs:
        return False
    return caller.is_bot or has_permission(caller.role, permission_for(door))


def expected(cell: Cell) -> set[int]:
    """The statuses that are right, as a rule one."""
    caller, row = cell.caller, cell.row
    if not caller.home:
        return {401}
    if not opens(caller, cell.door):
        return {403}
    if cell.target == OWN:
        return {own_status(caller, cell.door, row)}
    # A key that is too narrow may be told so before the row is looked for, or after.
    if narrowed(caller, row) == 403:
        return {403, 404}
    return {row.beyond} if caller.is_narrow else {404}


def own_status(caller: Caller, door: Door, row: Row) -> int:
    refused = narrowed(caller, row) or (row.bots if caller.is_bot else 0)
    return refused or row.others.get(caller.name, door.operation.status)


def narrowed(caller: Caller, row: Row) -> int:
    return row.narrow if caller.is_narrow else 0


# --- asking --------------------------------------------------------------------------------------------


def address(stage: Stage, cell: Cell) -> str:
    """What is not varied points at rows of the caller's own workspace."""
    caller, row = cell.caller, cell.row
    path, home = cell.door.path({**row.values, **named(stage, cell)}), caller.home or HARBOUR
    return f"{path}?{urlencode(row.query(stage, home))}" if row.query else path


def named(stage: Stage, cell: Cell) -> dict[str, str]:
    """The rows that the address names."""
    home, (kind, _, single) = cell.caller.home or HARBOUR, cell.target.partition(" ")
    values = {}
    for name, word in cell.row.names.items():
        varied = kind != OWN and single in {"", name}
        values[name] = word(stage, cell.caller.away if varied else home)
        if varied and kind == MISSING:
            values[name] = cell.door.absent(name, len(values[name]))
    return values


def asked(stage: Stage, cell: Cell, body: Any = None) -> tuple[Answer, str]:
    """The answer, and all that the caller said."""
    home, row = cell.caller.home or HARBOUR, cell.row
    if body is None and row.body:
        body = row.body(stage, home)
    path = address(stage, cell)
    headers = {"If-Match": row.if_match} if cell.door.operation.is_conditional else {}
    answer = call(cell.caller, cell.method or cell.door.method, path, body, headers)
    return answer, f"{path} {body}"


def run(
    stage: Stage,
    caller: Caller,
    doors: Iterable[Door],
    before: Digests | None = None,
    is_due: IsDue = every_cell,
) -> Outcome:
    """The cells of one caller."""
    outcome, refusals, before = Outcome(), Refusals(), before or digests(stage)
    for _, group in groupby(cells(caller, doors, is_due), key=lambda cell: cell.door):
        with unnoticed():
            for cell in group:
                # What is only read needs no undoing of its own; what it breaks ends with the operation.
                with unnoticed() if cell.door.method in WRITES else nullcontext():
                    outcome.cells += 1
                    words = check(stage, cell, refusals, before)
                    outcome.findings += [f"{cell}: {word}" for word in words]
    outcome.findings += [f"{caller.name} · {word}" for word in refusals.findings()]
    return outcome


def check(stage: Stage, cell: Cell, refusals: "Refusals", before: Digests) -> list[str]:
    # Before it is asked, for afterwards the row may be gone.
    said = named(stage, cell)
    answer, words = asked(stage, cell)
    wanted = expected(cell)
    findings = leaks(stage, cell.caller, answer, words)
    if answer.status not in wanted:
        findings.append(f"expected {min(wanted)}, got {answer.status}{why(answer)}")
    is_allowed = min(wanted) < 400
    findings += changes(stage, cell.caller, answer, before, is_allowed=is_allowed)
    is_control = is_allowed and cell.door.method in WRITES and cell.row.changes
    if is_control and answer.status in wanted and not answer.wrote_tenant_rows:
        findings.append("was allowed and changed nothing: the positive control is empty")
    refusals.keep(cell, answer, said)
    return findings


def why(answer: Answer) -> str:
    said = answer.response.content.decode(errors="replace") if answer.status >= 400 else ""
    return f" {said[:300]}"


def changes(stage: Stage, caller: Caller, answer: Answer, before: Digests, *, is_allowed: bool) -> list[str]:
    """Rows that must not have changed: those of others never, one's own not by a refusal."""
    if not answer.wrote_tenant_rows:
        return []
    homes = [home for home in stage.workspaces if home != caller.home or not is_allowed]
    return [
        f"changed {table} of {home}"
        for home in homes
        for table, now in digest(stage.workspaces[home], answer.wrote).items()
        if before[home][table] != now
    ]


class Refusals:
    """Foreign and missing must look alike, or an answer tells what exists."""

    def __init__(self) -> None:
        self.shapes: dict[tuple[str, str], str] = {}

    def keep(self, cell: Cell, answer: Answer, said: Mapping[str, str]) -> None:
        """Without the words that the caller said himself."""
        if not cell.method:
            shape = answer.shape
            for word in said.values():
                shape = shape if word.isdigit() else shape.replace(word, "…")
            self.shapes[str(cell.door), cell.target] = shape

    def findings(self) -> list[str]:
        found = []
        for (door, target), shape in self.shapes.items():
            other = self.shapes.get((door, target.replace(CROSSED, MISSING)), shape)
            if target.startswith(CROSSED) and other != shape:
                found.append(f"{door}: {target} and missing can be told apart")
        return found


# --- what nobody offers --------------------------------------------------------------------------------


def run_other_methods(
    stage: Stage, callers: Mapping[str, Caller], doors: Iterable[Door], before: Digests
) -> Outcome:
    """Methods that an address does not have: 405 for everybody, and nothing done."""
    outcome = Outcome()
    by_name: dict[str, list[Door]] = {}
    for door in doors:
        by_name.setdefault(door.name, []).append(door)
    for offered in by_name.values():
        strange = [one for one in (*WRITES, "OPTIONS") if one not in {door.method for door in offered}]
        for place, method in enumerate(strange):
            caller = callers[("owner", "bot", "no key")[place % 3]]
            cell = Cell(caller, offered[0], OWN, method)
            with unnoticed():
                outcome.cells += 1
                answer, words = asked(stage, cell)
                said = leaks(stage, caller, answer, words)
                said += changes(stage, caller, answer, before, is_allowed=False)
                said += [f"expected 405, got {answer.status}"] if answer.status != 405 else []
                outcome.findings += [f"{cell}: {word}" for word in said]
    return outcome
