"""The cells: every route, asked with every method by everybody, at home and at somebody else's door."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import quote

from django.apps import apps

from personas.roles import Role, may
from tests.isolation.cast import HARBOUR, KINDS, Asker, Stage, undone
from tests.isolation.expectations import INSIDE, OPERATORS, OUTSIDE, expected_inside
from tests.isolation.probe import Answer, ask, digest, quick_templates
from tests.isolation.rows import LOGIN, METHODS, SAFE, Page
from tests.isolation.walk import Route, all_routes

ASKERS = (
    "anonymous",
    "owner",
    "admin",
    "editor",
    "reviewer",
    "viewer",
    "removed member",
    "stranger with a workspace",
    "stranger without one",
    "superuser",
)
OBJECTS = {"key", "member_id", "invitation_id"}
# The rows that addresses outside the record families name.
ROWS = {"member_id": "members", "invitation_id": "invitations"}
Digests = dict[str, dict[str, str]]
# Asked in turn: the gate treats them alike, and over all askers each route meets each of them.
RARE = tuple(method for method in METHODS if method not in {"GET", "POST"})


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


# Says of an asker, the number of a route, a target and a method whether that is asked.
IsDue = Callable[[Asker, int, str, str], bool]
# Alike in what they meet: of each group one is asked at each route.
IN_TURN = (
    ("admin", "editor", "reviewer", "viewer"),
    ("removed member", "stranger without one", "superuser"),
)


# Two houses are alike: one owner looks for their rows at home, the other one stands before their door.
PARTS = {
    "owner": {"own", "crossed", "missing"},
    "stranger with a workspace": {"elsewhere", "nowhere"},
}


def every_cell(asker: Asker, number: int, target: str, method: str) -> bool:
    return True


def one_in_turn(asker: Asker, number: int, target: str, method: str) -> bool:
    """What every run asks: each route is met by its owner, visitors, one of each group, writing viewers."""
    if asker.name in PARTS:
        # What is missing looks as what is theirs; that it does is asked at a part of the routes.
        is_rare = target in {"missing", "nowhere"} or (target == "elsewhere" and method == "POST")
        is_rare = is_rare or method in RARE
        return target in PARTS[asker.name] and not (is_rare and number % 3)
    if asker.name == "viewer" and method == "POST":
        return target == "own"
    group = next((names for names in IN_TURN if asker.name in names), None)
    if group is None:
        return True
    if asker.home and method == "GET" and number % 3:
        # The owner reads every page; for the others a part of them is enough.
        return False
    return group[number % len(group)] == asker.name and (target == "own" or not asker.home)


def inside_cells(
    stage: Stage, asker: Asker, routes: Iterable[Route], is_due: IsDue = every_cell
) -> Iterator[Cell]:
    place = list(stage.askers).index(asker.name)
    for number, route in enumerate(routes):
        for target in targets(route, asker):
            for method in methods(asker, INSIDE[route.name], target, number + place):
                if is_due(asker, number, target, method):
                    yield Cell(asker, route, method, target)


def targets(route: Route, asker: Asker) -> list[str]:
    """Own; crossed: their row under our address; missing; elsewhere: their address; nowhere: no address."""
    rows = ["crossed", "missing"] if asker.home else ["missing"]
    places = ["elsewhere", "nowhere"] if asker.home else ["nowhere"]
    if not named_rows(route):
        return ["own", *places]
    return ["own", *rows, *places] if asker.home else ["own", *rows]


def methods(asker: Asker, page: Page, target: str, turn: int) -> tuple[str, ...]:
    """All that tells something new: who is refused before the row is looked for is asked for one row only."""
    rare = RARE[turn % len(RARE)]
    if target == "own":
        return ("GET", "POST", rare) if asker.home else ("GET", "POST")
    if not asker.home:
        return ("GET",)
    if target == "crossed" or (target == "missing" and asker.role == Role.OWNER):
        writes = page.write is not None and may(asker.role, page.write)
        return ("GET", "POST") if writes else ("GET",)
    if target == "elsewhere":
        return ("GET", "POST") if asker.role == Role.OWNER else (("GET", "POST", rare)[turn % 3],)
    return ("GET",) if target == "nowhere" and asker.role == Role.OWNER else ()


def run_inside(stage: Stage, asker: Asker, routes: Iterable[Route], is_due: IsDue = every_cell) -> Outcome:
    """The cells of one asker on the workspace routes."""
    outcome, refusals = Outcome(), Refusals(asker)
    before = digests(stage)
    asked = inside_cells(stage, asker, routes, is_due)
    for _, cells in groupby(asked, key=lambda cell: cell.route):
        with undone(), quick_templates():
            for cell in cells:
                # A page that is only read needs no undoing of its own; what it breaks ends with the route.
                with undone() if cell.method == "POST" else nullcontext():
                    outcome.cells += 1
                    said = check_inside(stage, cell, refusals, before)
                    outcome.findings += [f"{cell}: {words}" for words in said]
    outcome.findings += refusals.findings()
    return outcome


def check_inside(stage: Stage, cell: Cell, refusals: "Refusals", before: Digests) -> list[str]:
    page, asker = INSIDE[cell.route.name], cell.asker
    path = address(stage, cell)
    home = asker.home or HARBOUR
    body = page.body(stage, home) if cell.method == "POST" else {}
    answer = ask(asker, cell.method, path, body)
    wanted = expected_inside(page, asker, cell.method, cell.target)
    findings = wrong_status(answer, wanted, path) + leaks(stage, asker, answer, f"{path} {body}")
    findings += changes(stage, asker, answer, before if wanted < 400 and asker.home else None)
    if (
        cell.method == "POST"
        and wanted < 400
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
    page = INSIDE[cell.route.name]
    values = {"number": "1", "place": "0", **page.values}
    if values.get("at") == "now":
        # The table is older than the stage, on which nothing had happened before.
        values["at"] = stage.moment
    values["workspace"] = "no-such-place" if cell.target == "nowhere" else stage.workspaces[place].slug
    for name, (kind, attribute) in named_rows(cell.route).items():
        row = stage.row(owner, kind, page.variant)
        values[name] = absent(attribute) if cell.target == "missing" else str(getattr(row, attribute))
    return cell.route.path(values)


def named_rows(route: Route) -> dict[str, tuple[str, str]]:
    """The parameters of an address that name rows, with the kind of row and what stands for it."""
    page = INSIDE[route.name]
    found = dict(page.objects)
    for name in OBJECTS & set(route.parameters) - set(found) - set(page.values):
        kind = ROWS.get(name, route.name.partition(":")[0])
        found[name] = kind, KINDS[kind][1] if kind in KINDS else "pk"
    return found


def absent(attribute: str) -> str:
    return "no-such-row" if attribute in {"slug", "name", "harness"} else "987654321"


class Refusals:
    """Foreign and missing must look alike, or an answer tells what exists."""

    AT_HOME = (("crossed", "missing"), ("elsewhere", "nowhere"))
    # To somebody without a home all of it is foreign.
    OUTSIDE = (("own", "missing"), ("own", "nowhere"))

    def __init__(self, asker: Asker) -> None:
        self.alike = self.AT_HOME if asker.home else self.OUTSIDE
        self.shapes: dict[tuple[str, str, str], str] = {}

    def keep(self, cell: Cell, answer: Answer) -> None:
        self.shapes[cell.route.name, cell.method, cell.target] = answer.shape

    def findings(self) -> list[str]:
        found = []
        for (route, method, target), shape in self.shapes.items():
            for foreign, missing in self.alike:
                other = self.shapes.get((route, method, missing))
                if target == foreign and other is not None and other != shape:
                    found.append(f"{method} {route}: {foreign} and {missing} can be told apart")
        return found


def wrong_status(answer: Answer, wanted: int, path: str) -> list[str]:
    findings = [f"expected {wanted}, got {answer.status}"] if answer.status != wanted else []
    if wanted == answer.status == 302 and "/w/" not in answer.location and answer.location != "/":
        sent_to_login = answer.location == f"{LOGIN}?next={quote(path)}"
        findings += [] if sent_to_login else [f"sent to {answer.location}"]
    return findings


def leaks(stage: Stage, asker: Asker, answer: Answer, said: str) -> list[str]:
    own = {asker.home} if asker.home else set()
    found = stage.canaries.foreign_in(answer.seen, own, f"{said} {asker.own_words}")
    return [f"leaks {stage.canaries.describe(word)}" for word in found]


def changes(stage: Stage, asker: Asker, answer: Answer, before: Digests | None) -> list[str]:
    """Rows that must not have changed; a refusal may change none at all."""
    if not answer.wrote_tenant_rows:
        return []
    if before is None:
        return [f"was refused and yet wrote to {', '.join(sorted(answer.wrote))}"]
    now = digest(stage.workspaces[asker.away], answer.wrote)
    changed = [name for name, said in now.items() if before[asker.away][name] != said]
    return [f"changed {name} of {asker.away}" for name in changed]


def digests(stage: Stage) -> Digests:
    return {home: digest(workspace) for home, workspace in stage.workspaces.items()}


def inside_routes() -> list[Route]:
    return [route for route in all_routes() if route.is_inside]


def outside_routes() -> list[Route]:
    return [route for route in all_routes() if not route.is_inside]


# Outside workspaces the roles are all alike, so one of them speaks for the others.
OUTSIDERS = ("anonymous", "viewer", "stranger with a workspace", "stranger without one", "superuser")


def run_outside(stage: Stage, asker: Asker, routes: Iterable[Route], *, in_turn: bool = False) -> Outcome:
    """The cells of one asker on accounts, health, entrance and back office."""
    outcome = Outcome()
    for number, route in enumerate(routes):
        is_office = route.pattern.startswith(OPERATORS)
        check = check_office if is_office else check_place
        if in_turn and is_office and number % 6:
            # Django's own pages are alike.
            continue
        for method in outside_methods(asker, route, number if in_turn else None):
            cell = Cell(asker, route, method, "own")
            with undone(), quick_templates():
                outcome.cells += 1
                outcome.findings += [f"{cell}: {said}" for said in check(stage, cell)]
    return outcome


def outside_methods(asker: Asker, route: Route, turn: int | None = None) -> tuple[str, ...]:
    """The signed-in are alike out here, so most of them only look; nobody signed in meets all of it."""
    if asker.user is None:
        return METHODS if turn is None else ("GET", "POST", RARE[turn % len(RARE)])
    is_office = route.pattern.startswith(OPERATORS)
    return ("GET", "POST") if asker.name == ("superuser" if is_office else "viewer") else ("GET",)


ANY_VALUE = {"token": "forged", "pk": "1", "key": "forged", "uidb36": "1", "id": "1"}


def check_place(stage: Stage, cell: Cell) -> list[str]:
    """Accounts and the entrance: closed ones lead to the log-in, open ones show nothing of any tenant."""
    path, place = cell.route.path(ANY_VALUE), OUTSIDE[cell.route.name]
    answer = ask(cell.asker, cell.method, path)
    wanted = place.wanted(cell.asker)
    findings = leaks(stage, cell.asker, answer, path)
    if answer.status >= 500 or (cell.method in SAFE and answer.status != wanted):
        findings.append(f"expected {wanted}, got {answer.status}")
    is_closed = cell.asker.user is None and wanted == 302 and not place.is_open
    if is_closed and not answer.location.startswith(LOGIN):
        findings.append(f"was not sent to the log-in, got {answer.status} {answer.location}")
    if answer.wrote_tenant_rows:
        findings.append(f"wrote to {', '.join(sorted(answer.wrote))}")
    return findings


def check_office(stage: Stage, cell: Cell) -> list[str]:
    """The back office opens for superusers; to everybody else none of it exists."""
    values = {"app_label": "personas", "content_type_id": "1", "url": "nothing", "id": "1"}
    path = cell.route.path(values | {"object_id": any_key(cell.route)})
    answer = ask(cell.asker, cell.method, path)
    if cell.asker.name == "superuser":
        return [f"answered {answer.status}"] if answer.status >= 500 else []
    findings = leaks(stage, cell.asker, answer, path)
    if not is_shut(cell, answer):
        findings.append(f"got {answer.status} {answer.location}")
    if answer.wrote_tenant_rows:
        findings.append(f"wrote to {', '.join(sorted(answer.wrote))}")
    return findings


def is_shut(cell: Cell, answer: Answer) -> bool:
    """The office's door sends visitors to the log-in and is not there for others; the rest leads to it."""
    to_the_door = answer.location == f"/{OPERATORS}" or answer.location.startswith(f"/{OPERATORS}login/?")
    if cell.asker.user is None:
        return answer.status == 302 and (answer.location.startswith(LOGIN) or to_the_door)
    return answer.status == 404 or (answer.status == 302 and to_the_door and cell.route.name != "admin:login")


def any_key(route: Route) -> str:
    """A row that is there, for the pages that name one: `admin:personas_agent_change` names an agent."""
    folder = route.pattern.removeprefix(OPERATORS).split("/")
    try:
        model = apps.get_model(folder[0], folder[1])
    except LookupError:
        return "1"
    return str(model._base_manager.values_list("pk", flat=True).first() or 1)
