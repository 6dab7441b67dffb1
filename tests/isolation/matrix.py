"""The page isolation matrix: every route, with every method, by every requester, for own, foreign and missing rows."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from urllib.parse import quote

from django.apps import apps

from personas.roles import Role, has_permission
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
# The kinds of rows named by URL parameters outside the record pages.
ROWS = {"member_id": "members", "invitation_id": "invitations"}
Digests = dict[str, dict[str, str]]
# Rotated: the middleware treats them alike, and over all requesters each route gets each of them.
RARE = tuple(method for method in METHODS if method not in {"GET", "POST"})


@dataclass
class Outcome:
    """The number of cells that ran, and the findings."""

    cells: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.cells += other.cells
        self.findings += other.findings


@dataclass(frozen=True)
class Cell:
    """One request."""

    asker: Asker
    route: Route
    method: str
    target: str

    def __str__(self) -> str:
        return f"{self.asker.name} · {self.method} {self.route.name} · {self.target}"


# Decides for a cell and the number of its route whether this run includes it.
IsDue = Callable[[Cell, int], bool]
# Treated alike: each route is requested by one of each group.
MEMBERS = ("admin", "editor", "reviewer", "viewer")
STRANGERS = ("removed member", "stranger without one", "superuser")


def every_cell(cell: Cell, number: int) -> bool:
    return True


def one_in_turn(turn: int) -> IsDue:
    """Select the cells of one run: each route as owner, anonymous and outsider; the others rotate.

    Viewers try every write; over all turns each role does.
    """

    def is_due(cell: Cell, number: int) -> bool:
        name, place = cell.asker.name, number + turn
        if name == "owner":
            return is_due_to_owner(cell, place)
        if name == "anonymous":
            return cell.target == "own" or place % 3 == 0
        if name in MEMBERS:
            return cell.target == "own" and is_due_to_member(cell, place)
        is_mine = name not in STRANGERS or STRANGERS[place % 3] == name
        return is_mine and is_due_to_stranger(cell, place // 3)

    return is_due


def is_due_to_owner(cell: Cell, place: int) -> bool:
    """Own rows, and foreign rows under the own URL; unsupported methods are rare."""
    page = INSIDE[cell.route.name]
    is_form = page.read is not None and page.write is not None
    if cell.target not in {"own", "crossed", "missing"}:
        # Both workspaces have the same rows: the other owner covers these targets.
        return False
    if not is_offered(page, cell.method):
        return cell.target == "own" and place % 6 == 0
    # GET and POST of a form use the same lookup: one method for own rows, the other for the rest.
    way = ("GET", "POST")[(place + (cell.target == "own")) % 2]
    is_due = not is_form or cell.method == way
    return is_due and (cell.target != "missing" or place // 2 % 3 == 0)


def is_due_to_member(cell: Cell, place: int) -> bool:
    """The owner requests every page; for other members a sample is enough."""
    is_write = cell.method == "POST" and is_offered(INSIDE[cell.route.name], "POST")
    if cell.asker.name == "viewer" and is_write:
        return True
    is_mine = MEMBERS[place % 4] == cell.asker.name
    return is_mine and place // 4 % (2 if is_write else 6) == 0


def is_due_to_stranger(cell: Cell, place: int) -> bool:
    """Outsiders are rejected before any lookup: one method is enough, with an occasional comparison."""
    if cell.target == ("elsewhere" if cell.asker.home else "own"):
        return ("GET", "POST")[place % 2] == cell.method
    compared = {"nowhere"} if cell.asker.home else {"missing", "nowhere"}
    return cell.target in compared and place % 4 == 0


def is_offered(page: Page, method: str) -> bool:
    return {"GET": page.read, "POST": page.write}.get(method) is not None


def inside_cells(
    stage: Stage, asker: Asker, routes: Iterable[Route], is_due: IsDue = every_cell
) -> Iterator[Cell]:
    place, numbers = list(stage.askers).index(asker.name), route_numbers()
    for route in routes:
        number = numbers[route.name]
        for target in targets(route, asker):
            for method in methods(asker, INSIDE[route.name], target, number + place):
                if is_due(cell := Cell(asker, route, method, target), number):
                    yield cell


@cache
def route_numbers() -> dict[str, int]:
    """Number the routes; the numbers do not depend on which routes are selected."""
    return {route.name: number for number, route in enumerate(inside_routes())}


def targets(route: Route, asker: Asker) -> list[str]:
    """List the targets: own; crossed: a foreign row under the own URL; missing; elsewhere: a foreign workspace; nowhere: none."""
    rows = ["crossed", "missing"] if asker.home else ["missing"]
    places = ["elsewhere", "nowhere"] if asker.home else ["nowhere"]
    if not named_rows(route):
        return ["own", *places]
    return ["own", *rows, *places] if asker.home else ["own", *rows]


def methods(asker: Asker, page: Page, target: str, turn: int) -> tuple[str, ...]:
    """List the methods worth testing: one row is enough if the request is rejected before the row is looked up."""
    rare = RARE[turn % len(RARE)]
    if target == "own":
        return ("GET", "POST", rare) if asker.home else ("GET", "POST")
    if not asker.home:
        return ("GET",)
    if target == "crossed" or (target == "missing" and asker.role == Role.OWNER):
        writes = page.write is not None and has_permission(asker.role, page.write)
        return ("GET", "POST") if writes else ("GET",)
    if target == "elsewhere":
        return ("GET", "POST") if asker.role == Role.OWNER else (("GET", "POST", rare)[turn % 3],)
    return ("GET",) if target == "nowhere" and asker.role == Role.OWNER else ()


def run_inside(
    stage: Stage,
    asker: Asker,
    routes: Iterable[Route],
    is_due: IsDue = every_cell,
    before: Digests | None = None,
) -> Outcome:
    """Run the cells of one requester on the workspace routes."""
    outcome, refusals = Outcome(), Refusals(asker)
    before = before or stage.before
    asked = inside_cells(stage, asker, routes, is_due)
    for _, cells in groupby(asked, key=lambda cell: cell.route):
        with undone(), quick_templates():
            for cell in cells:
                # Reads need no savepoint of their own; what they break is rolled back with the route.
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
    """Build the URL for this target; parameters that are not varied name rows of the requester's own workspace."""
    home = cell.asker.home or HARBOUR
    away = cell.asker.away
    place = away if cell.target == "elsewhere" else home
    owner = away if cell.target in {"crossed", "elsewhere"} else home
    page = INSIDE[cell.route.name]
    values = {"number": "1", "place": "0", **page.values}
    if values.get("at") == "now":
        # The table is created before the data, so it cannot contain the timestamp.
        values["at"] = stage.moment
    values["workspace"] = "no-such-place" if cell.target == "nowhere" else stage.workspaces[place].slug
    for name, (kind, attribute) in named_rows(cell.route).items():
        row = stage.row(owner, kind, page.variant)
        values[name] = absent(attribute) if cell.target == "missing" else str(getattr(row, attribute))
    return cell.route.path(values)


@cache
def named_rows(route: Route) -> dict[str, tuple[str, str]]:
    """The URL parameters that name rows, with the kind of row and the identifying attribute."""
    page = INSIDE[route.name]
    found = dict(page.objects)
    for name in OBJECTS & set(route.parameters) - set(found) - set(page.values):
        kind = ROWS.get(name, route.name.partition(":")[0])
        found[name] = kind, KINDS[kind][1] if kind in KINDS else "pk"
    return found


def absent(attribute: str) -> str:
    return "no-such-row" if attribute in {"slug", "name", "harness"} else "987654321"


class Refusals:
    """Compares the responses for foreign and missing rows: a difference reveals what exists."""

    AT_HOME = (("crossed", "missing"), ("elsewhere", "nowhere"))
    # To a user without a workspace every row is foreign.
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
    """Find forbidden changes; a rejected request (`before` is None) must not write at all."""
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


# Outside workspaces all roles are treated alike, so one of them is enough.
OUTSIDERS = ("anonymous", "viewer", "stranger with a workspace", "stranger without one", "superuser")


def run_outside(stage: Stage, asker: Asker, routes: Iterable[Route], turn: int | None = None) -> Outcome:
    """Run the cells of one requester on account, health and admin pages: all, or those of a turn."""
    outcome = Outcome()
    for number, route in enumerate(routes):
        check = check_office if is_office(route) else check_place
        place = None if turn is None else number + turn
        for method in outside_methods(asker, route, place):
            cell = Cell(asker, route, method, "own")
            with undone(), quick_templates():
                outcome.cells += 1
                outcome.findings += [f"{cell}: {said}" for said in check(stage, cell)]
    return outcome


def is_office(route: Route) -> bool:
    return route.pattern.startswith(OPERATORS)


def outside_methods(asker: Asker, route: Route, place: int | None = None) -> tuple[str, ...]:
    """Signed-in users are treated alike here, so most of them only send GET; anonymous sends all methods."""
    if place is not None and not is_due_outside(asker, route, place):
        return ()
    if asker.user is None:
        return METHODS if place is None else ("GET", "POST", RARE[place % len(RARE)])
    return ("GET", "POST") if asker.name == ("superuser" if is_office(route) else "viewer") else ("GET",)


def is_due_outside(asker: Asker, route: Route, place: int) -> bool:
    """Anonymous requests every page, and one of the signed-in users does; admin pages are sampled."""
    if is_office(route) and place % 6:
        return False
    signed_in = OUTSIDERS[1:]
    return asker.user is None or signed_in[(place // 6 if is_office(route) else place) % 4] == asker.name


ANY_VALUE = {"token": "forged", "pk": "1", "key": "forged", "uidb36": "1", "id": "1"}


def check_place(stage: Stage, cell: Cell) -> list[str]:
    """Account pages: protected ones redirect to the login, open ones show no tenant data."""
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
    """The admin site is open to superusers; for everyone else it does not exist."""
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
    """Whether an admin page denies access: anonymous goes to the login, others get 404 or a redirect to the admin index."""
    to_the_door = answer.location == f"/{OPERATORS}" or answer.location.startswith(f"/{OPERATORS}login/?")
    if cell.asker.user is None:
        return answer.status == 302 and (answer.location.startswith(LOGIN) or to_the_door)
    return answer.status == 404 or (answer.status == 302 and to_the_door and cell.route.name != "admin:login")


def any_key(route: Route) -> str:
    """The key of an existing row of the page's model: `admin:personas_agent_change` names an agent."""
    folder = route.pattern.removeprefix(OPERATORS).split("/")
    try:
        model = apps.get_model(folder[0], folder[1])
    except LookupError:
        return "1"
    return str(model._base_manager.values_list("pk", flat=True).first() or 1)
