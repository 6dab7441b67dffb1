"""The cells: every route, asked with every method by everybody, at home and at somebody else's door."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

from personas.models import Workspace
from tests.isolation.cast import HARBOUR, KINDS, Asker, Stage, undone
from tests.isolation.expectations import INSIDE, LOGIN, METHODS, OPERATORS, OUTSIDE, SAFE, expected_inside
from tests.isolation.probe import Answer, ask, digest
from tests.isolation.walk import Route, all_routes

OBJECTS = {"key", "member_id", "invitation_id"}
# The rows that addresses outside the record families name.
ROWS = {"member_id": "members", "invitation_id": "invitations"}
# In the own column all methods are asked; elsewhere the rare ones take turns, for the gate treats them alike.
COMMON = ("GET", "HEAD", "POST")


@dataclass
class Outcome:
    """How many cells were asked, and what was wrong."""

    cells: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.cells += other.cells
        self.findings += other.findings


@dataclass(frozen=True)
class Cell:
    """One question."""

    asker: Asker
    route: Route
    method: str
    target: str

    def __str__(self) -> str:
        return f"{self.asker.name} · {self.method} {self.route.name} · {self.target}"


def inside_cells(asker: Asker, routes: Iterable[Route]) -> Iterator[Cell]:
    for route in routes:
        for target in targets(route):
            for method in methods(route, target, asker):
                yield Cell(asker, route, method, target)


def targets(route: Route) -> tuple[str, ...]:
    has_object = OBJECTS & set(route.parameters)
    return (
        ("own", "crossed", "missing", "elsewhere", "nowhere")
        if has_object
        else ("own", "elsewhere", "nowhere")
    )


def methods(route: Route, target: str, asker: Asker) -> tuple[str, ...]:
    if target == "own":
        return METHODS
    rare = METHODS[len(COMMON) :]
    turn = rare[crc32(f"{route.name} {target} {asker.name}".encode()) % len(rare)]
    return ("GET", "POST", turn) if asker.home else ("GET", "POST")


def run_inside(stage: Stage, asker: Asker, routes: Iterable[Route]) -> Outcome:
    """All cells of one asker on the workspace routes."""
    outcome, refusals = Outcome(), Refusals()
    for cell in inside_cells(asker, routes):
        with undone():
            outcome.cells += 1
            outcome.findings += [f"{cell}: {said}" for said in check_inside(stage, cell, refusals)]
    outcome.findings += refusals.findings()
    return outcome


def check_inside(stage: Stage, cell: Cell, refusals: "Refusals") -> list[str]:
    page, asker = INSIDE[cell.route.name], cell.asker
    path = address(stage, cell)
    home = asker.home or HARBOUR
    body = page.body(stage, home) if cell.method == "POST" else {}
    answer = ask(asker, cell.method, path, body)
    wanted = expected_inside(page, asker, cell.method, cell.target)
    findings = wrong_status(answer, wanted, path) + leaks(stage, asker, answer, f"{path} {body}")
    findings += changes(stage, asker, answer, is_allowed=wanted < 400 and bool(asker.home))
    if (
        cell.method == "POST"
        and wanted == 302
        and asker.home
        and page.changes
        and not answer.wrote_tenant_rows
    ):
        findings.append("was allowed and changed nothing: the positive control is empty")
    refusals.keep(cell, answer)
    return findings


def address(stage: Stage, cell: Cell) -> str:
    """The path for this target; what is not varied points at rows of the asker's own workspace."""
    home = cell.asker.home or HARBOUR
    away = cell.asker.away
    place = away if cell.target == "elsewhere" else home
    owner = away if cell.target in {"crossed", "elsewhere"} else home
    values = {"number": "1", "place": "0"}
    values["workspace"] = "no-such-place" if cell.target == "nowhere" else stage.workspaces[place].slug
    for name in OBJECTS & set(cell.route.parameters):
        kind = ROWS.get(name, cell.route.name.partition(":")[0])
        variant = INSIDE[cell.route.name].variant
        values[name] = absent(kind) if cell.target == "missing" else stage.key(owner, kind, variant)
    return cell.route.path(values)


def absent(kind: str) -> str:
    return "no-such-row" if kind in KINDS and KINDS[kind][1] in {"slug", "name"} else "987654321"


class Refusals:
    """Foreign and missing must look alike, or an answer tells what exists."""

    ALIKE = (("crossed", "missing"), ("elsewhere", "nowhere"))

    def __init__(self) -> None:
        self.shapes: dict[tuple[str, str, str], str] = {}

    def keep(self, cell: Cell, answer: Answer) -> None:
        self.shapes[cell.route.name, cell.method, cell.target] = answer.shape

    def findings(self) -> list[str]:
        found = []
        for (route, method, target), shape in self.shapes.items():
            for foreign, missing in self.ALIKE:
                other = self.shapes.get((route, method, missing))
                if target == foreign and other is not None and other != shape:
                    found.append(f"{method} {route}: {foreign} and {missing} can be told apart")
        return found


def wrong_status(answer: Answer, wanted: int, path: str) -> list[str]:
    findings = [f"expected {wanted}, got {answer.status}"] if answer.status != wanted else []
    if wanted == answer.status == 302 and "/w/" not in answer.location and answer.location != "/":
        sent_to_login = answer.location == f"{LOGIN}?next={path}"
        findings += [] if sent_to_login else [f"sent to {answer.location}"]
    return findings


def leaks(stage: Stage, asker: Asker, answer: Answer, said: str) -> list[str]:
    own = {asker.home} if asker.home else set()
    found = stage.canaries.foreign_in(answer.seen, own, f"{said} {asker.own_words}")
    return [f"leaks {stage.canaries.describe(word)}" for word in found]


def changes(stage: Stage, asker: Asker, answer: Answer, *, is_allowed: bool) -> list[str]:
    if not answer.wrote_tenant_rows:
        return []
    if not is_allowed:
        return [f"was refused and yet wrote to {', '.join(sorted(answer.wrote))}"]
    return changed_rows(stage.workspaces[asker.away], stage)


_digests: dict[int, dict[str, str]] = {}


def changed_rows(workspace: Workspace, stage: Stage) -> list[str]:
    """What differs from the time the stage was set."""
    before = _digests.setdefault(workspace.pk, {}) or _digests[workspace.pk]
    return [
        f"changed {name} of {workspace}" for name, now in digest(workspace).items() if before[name] != now
    ]


def remember_rows(stage: Stage) -> None:
    """Take the fingerprints that later ones are held against."""
    _digests.clear()
    _digests.update({workspace.pk: digest(workspace) for workspace in stage.workspaces.values()})


def inside_routes() -> list[Route]:
    return [route for route in all_routes() if route.is_inside]


def outside_routes() -> list[Route]:
    return [route for route in all_routes() if not route.is_inside]


def run_outside(stage: Stage, asker: Asker, routes: Iterable[Route]) -> Outcome:
    """All cells of one asker on accounts, health, entrance and back office."""
    outcome = Outcome()
    for route in routes:
        check = check_operators if route.pattern.startswith(OPERATORS) else check_place
        for method in ("GET", "POST") if route.pattern.startswith(OPERATORS) else METHODS:
            with undone():
                outcome.cells += 1
                cell = Cell(asker, route, method, "own")
                outcome.findings += [f"{cell}: {said}" for said in check(stage, cell)]
    return outcome


ANY_VALUE = {"token": "forged", "pk": "1", "key": "forged", "uidb36": "1", "id": "1"}


def check_place(stage: Stage, cell: Cell) -> list[str]:
    path, place = cell.route.path(ANY_VALUE), OUTSIDE[cell.route.name]
    answer = ask(cell.asker, cell.method, path)
    wanted = place.anonymous if cell.asker.name == "anonymous" else place.member
    findings = leaks(stage, cell.asker, answer, path)
    if answer.status >= 500:
        findings.append(f"answered {answer.status}")
    if cell.method in SAFE and answer.status != wanted:
        findings.append(f"expected {wanted}, got {answer.status}")
    if answer.wrote_tenant_rows:
        findings.append(f"wrote to {', '.join(sorted(answer.wrote))}")
    return findings


def check_operators(stage: Stage, cell: Cell) -> list[str]:
    raise NotImplementedError
