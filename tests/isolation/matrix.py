"""The page isolation matrix: which requests are sent, and what is checked.

Every route, with every method, by every requester, for own, foreign and missing rows.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from urllib.parse import quote

from django.apps import apps
from django.conf import settings

from personas.roles import Role, has_permission
from tests.isolation.cast import HARBOUR, KINDS, Requester, Stage, rolled_back
from tests.isolation.expectations import ADMIN, INSIDE, OUTSIDE, expected_inside
from tests.isolation.probe import CONTENT_POLICY, Answer, digest, quick_templates, send_request
from tests.isolation.rows import LOGIN, METHODS, SAFE, Page
from tests.isolation.walk import Route, all_routes

REQUESTERS = (
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

    requester: Requester
    route: Route
    method: str
    target: str

    def __str__(self) -> str:
        return f"{self.requester.name} · {self.method} {self.route.name} · {self.target}"


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
        name, position = cell.requester.name, number + turn
        if name == "owner":
            return is_due_to_owner(cell, position)
        if name == "anonymous":
            return cell.target == "own" or position % 3 == 0
        if name in MEMBERS:
            return cell.target == "own" and is_due_to_member(cell, position)
        is_mine = name not in STRANGERS or STRANGERS[position % 3] == name
        return is_mine and is_due_to_stranger(cell, position // 3)

    return is_due


def is_due_to_owner(cell: Cell, position: int) -> bool:
    """Own rows, and foreign rows under the own URL; unsupported methods are rare."""
    page = INSIDE[cell.route.name]
    is_form = page.read is not None and page.write is not None
    if cell.target not in {"own", "crossed", "missing"}:
        # Both workspaces have the same rows: the other owner covers these targets.
        return False
    if not is_offered(page, cell.method):
        return cell.target == "own" and position % 6 == 0
    # GET and POST of a form use the same lookup: one method for own rows, the other for the rest.
    way = ("GET", "POST")[(position + (cell.target == "own")) % 2]
    is_due = not is_form or cell.method == way
    return is_due and (cell.target != "missing" or position // 2 % 3 == 0)


def is_due_to_member(cell: Cell, position: int) -> bool:
    """The owner requests every page; for other members a sample is enough."""
    is_write = cell.method == "POST" and is_offered(INSIDE[cell.route.name], "POST")
    if cell.requester.name == "viewer" and is_write:
        return True
    is_mine = MEMBERS[position % 4] == cell.requester.name
    return is_mine and position // 4 % (2 if is_write else 6) == 0


def is_due_to_stranger(cell: Cell, position: int) -> bool:
    """Outsiders are rejected before any lookup: one method is enough, with an occasional comparison."""
    if cell.target == ("elsewhere" if cell.requester.home else "own"):
        return ("GET", "POST")[position % 2] == cell.method
    compared = {"nowhere"} if cell.requester.home else {"missing", "nowhere"}
    return cell.target in compared and position % 4 == 0


def is_offered(page: Page, method: str) -> bool:
    return {"GET": page.read, "POST": page.write}.get(method) is not None


def inside_cells(
    stage: Stage, requester: Requester, routes: Iterable[Route], is_due: IsDue = every_cell
) -> Iterator[Cell]:
    position, numbers = list(stage.requesters).index(requester.name), route_numbers()
    for route in routes:
        number = numbers[route.name]
        for target in targets(route, requester):
            for method in methods(requester, INSIDE[route.name], target, number + position):
                if is_due(cell := Cell(requester, route, method, target), number):
                    yield cell


@cache
def route_numbers() -> dict[str, int]:
    """Number the routes; the numbers do not depend on which routes are selected."""
    return {route.name: number for number, route in enumerate(inside_routes())}


def targets(route: Route, requester: Requester) -> list[str]:
    """List the targets of a route for this requester.

    own; crossed: a foreign row under the own URL; missing: no such row; elsewhere: the foreign workspace;
    nowhere: no such workspace.
    """
    rows = ["crossed", "missing"] if requester.home else ["missing"]
    places = ["elsewhere", "nowhere"] if requester.home else ["nowhere"]
    if not named_rows(route):
        return ["own", *places]
    return ["own", *rows, *places] if requester.home else ["own", *rows]


def methods(requester: Requester, page: Page, target: str, turn: int) -> tuple[str, ...]:
    """List the methods worth testing.

    One row is enough if the request is rejected before the row is looked up.
    """
    rare = RARE[turn % len(RARE)]
    if target == "own":
        return ("GET", "POST", rare) if requester.home else ("GET", "POST")
    if not requester.home:
        return ("GET",)
    if target == "crossed" or (target == "missing" and requester.role == Role.OWNER):
        writes = page.write is not None and has_permission(requester.role, page.write)
        return ("GET", "POST") if writes else ("GET",)
    if target == "elsewhere":
        return ("GET", "POST") if requester.role == Role.OWNER else (("GET", "POST", rare)[turn % 3],)
    return ("GET",) if target == "nowhere" and requester.role == Role.OWNER else ()


def run_inside(
    stage: Stage,
    requester: Requester,
    routes: Iterable[Route],
    is_due: IsDue = every_cell,
    before: Digests | None = None,
) -> Outcome:
    """Run the cells of one requester on the workspace routes."""
    outcome, refusals = Outcome(), Refusals(requester)
    before = before or stage.before
    selected = inside_cells(stage, requester, routes, is_due)
    for _, cells in groupby(selected, key=lambda cell: cell.route):
        with rolled_back(), quick_templates():
            for cell in cells:
                # Reads need no savepoint of their own; what they break is rolled back with the route.
                with rolled_back() if cell.method == "POST" else nullcontext():
                    outcome.cells += 1
                    findings = check_inside(stage, cell, refusals, before)
                    outcome.findings += [f"{cell}: {finding}" for finding in findings]
    outcome.findings += refusals.findings()
    return outcome


def check_inside(stage: Stage, cell: Cell, refusals: "Refusals", before: Digests) -> list[str]:
    page, requester = INSIDE[cell.route.name], cell.requester
    path = address(stage, cell)
    home = requester.home or HARBOUR
    body = page.body(stage, home) if cell.method == "POST" else {}
    answer = send_request(requester, cell.method, path, body)
    expected = expected_inside(page, requester, cell.method, cell.target)
    findings = wrong_status(answer, expected, path) + leaks(stage, requester, answer, f"{path} {body}")
    findings += wrong_headers(requester, answer)
    findings += changes(stage, requester, answer, before if expected < 400 and requester.home else None)
    if (
        cell.method == "POST"
        and expected < 400
        and requester.home
        and page.changes
        and not answer.wrote_tenant_rows
    ):
        findings.append("was allowed and changed nothing: the positive control is empty")
    refusals.keep(cell, answer)
    return findings


def address(stage: Stage, cell: Cell) -> str:
    """Build the URL for this target.

    Parameters that are not varied name rows of the requester's own workspace.
    """
    home = cell.requester.home or HARBOUR
    away = cell.requester.away
    workspace = away if cell.target == "elsewhere" else home
    owner = away if cell.target in {"crossed", "elsewhere"} else home
    page = INSIDE[cell.route.name]
    values = {"number": "1", "place": "0", **page.values}
    if values.get("at") == "now":
        # The table is created before the data, so it cannot contain the timestamp.
        values["at"] = stage.seeded_at
    values["workspace"] = "no-such-place" if cell.target == "nowhere" else stage.workspaces[workspace].slug
    for name, (kind, attribute) in named_rows(cell.route).items():
        row = stage.row(owner, kind, page.variant)
        values[name] = missing_value(attribute) if cell.target == "missing" else str(getattr(row, attribute))
    return cell.route.path(values)


@cache
def named_rows(route: Route) -> dict[str, tuple[str, str]]:
    """The URL parameters that name rows, with the kind of row and the identifying attribute."""
    page = INSIDE[route.name]
    rows = dict(page.objects)
    for name in OBJECTS & set(route.parameters) - set(rows) - set(page.values):
        kind = ROWS.get(name, route.name.partition(":")[0])
        rows[name] = kind, KINDS[kind][1] if kind in KINDS else "pk"
    return rows


def missing_value(attribute: str) -> str:
    return "no-such-row" if attribute in {"slug", "name", "harness"} else "987654321"


class Refusals:
    """Compares the responses for foreign and missing rows: a difference reveals what exists."""

    AT_HOME = (("crossed", "missing"), ("elsewhere", "nowhere"))
    # To a user without a workspace every row is foreign.
    OUTSIDE = (("own", "missing"), ("own", "nowhere"))

    def __init__(self, requester: Requester) -> None:
        self.alike = self.AT_HOME if requester.home else self.OUTSIDE
        self.shapes: dict[tuple[str, str, str], str] = {}

    def keep(self, cell: Cell, answer: Answer) -> None:
        self.shapes[cell.route.name, cell.method, cell.target] = answer.shape

    def findings(self) -> list[str]:
        findings = []
        for (route, method, target), shape in self.shapes.items():
            for foreign, missing in self.alike:
                other = self.shapes.get((route, method, missing))
                if target == foreign and other is not None and other != shape:
                    findings.append(f"{method} {route}: {foreign} and {missing} can be told apart")
        return findings


def wrong_status(answer: Answer, expected: int, path: str) -> list[str]:
    findings = [f"expected {expected}, got {answer.status}"] if answer.status != expected else []
    if expected == answer.status == 302 and "/w/" not in answer.location and answer.location != "/":
        sent_to_login = answer.location == f"{LOGIN}?next={quote(path)}"
        findings += [] if sent_to_login else [f"sent to {answer.location}"]
    return findings


def wrong_headers(requester: Requester, answer: Answer) -> list[str]:
    """Find pages that a cache may keep, and pages without the content security policy."""
    headers = answer.response.headers
    findings = []
    is_signed_in = settings.SESSION_COOKIE_NAME in requester.client.cookies
    if is_signed_in and "no-store" not in headers.get("Cache-Control", ""):
        findings.append("may be stored by a cache")
    if {part.strip() for part in headers.get("Content-Security-Policy", "").split(";")} != CONTENT_POLICY:
        findings.append("has another content security policy")
    return findings


def leaks(stage: Stage, requester: Requester, answer: Answer, sent: str) -> list[str]:
    own = {requester.home} if requester.home else set()
    canaries = stage.canaries.foreign_in(answer.visible_text, own, f"{sent} {requester.own_text}")
    return [f"leaks {stage.canaries.describe(canary)}" for canary in canaries]


def changes(stage: Stage, requester: Requester, answer: Answer, before: Digests | None) -> list[str]:
    """Find forbidden changes; a rejected request (`before` is None) must not write at all."""
    if not answer.wrote_tenant_rows:
        return []
    if before is None:
        return [f"was refused and yet wrote to {', '.join(sorted(answer.written_tables))}"]
    now = digest(stage.workspaces[requester.away], answer.written_tables)
    changed = [name for name, digest_now in now.items() if before[requester.away][name] != digest_now]
    return [f"changed {name} of {requester.away}" for name in changed]


def digests(stage: Stage) -> Digests:
    return {home: digest(workspace) for home, workspace in stage.workspaces.items()}


def inside_routes() -> list[Route]:
    return [route for route in all_routes() if route.is_inside]


def outside_routes() -> list[Route]:
    return [route for route in all_routes() if not route.is_inside]


# Outside workspaces all roles are treated alike, so one of them is enough.
OUTSIDERS = ("anonymous", "viewer", "stranger with a workspace", "stranger without one", "superuser")


def run_outside(
    stage: Stage, requester: Requester, routes: Iterable[Route], turn: int | None = None
) -> Outcome:
    """Run the cells of one requester on account, health and admin pages: all, or those of a turn."""
    outcome = Outcome()
    for number, route in enumerate(routes):
        check = check_admin_page if is_admin_page(route) else check_outside_page
        position = None if turn is None else number + turn
        for method in outside_methods(requester, route, position):
            cell = Cell(requester, route, method, "own")
            with rolled_back(), quick_templates():
                outcome.cells += 1
                outcome.findings += [f"{cell}: {finding}" for finding in check(stage, cell)]
    return outcome


def is_admin_page(route: Route) -> bool:
    return route.pattern.startswith(ADMIN)


def outside_methods(requester: Requester, route: Route, position: int | None = None) -> tuple[str, ...]:
    """Signed-in users are treated alike here, so most of them only send GET; anonymous sends all methods."""
    if position is not None and not is_due_outside(requester, route, position):
        return ()
    if requester.user is None:
        return METHODS if position is None else ("GET", "POST", RARE[position % len(RARE)])
    return (
        ("GET", "POST") if requester.name == ("superuser" if is_admin_page(route) else "viewer") else ("GET",)
    )


def is_due_outside(requester: Requester, route: Route, position: int) -> bool:
    """Anonymous requests every page, and one of the signed-in users does; admin pages are sampled."""
    if is_admin_page(route) and position % 6:
        return False
    signed_in = OUTSIDERS[1:]
    return (
        requester.user is None
        or signed_in[(position // 6 if is_admin_page(route) else position) % 4] == requester.name
    )


ANY_VALUE = {"token": "forged", "pk": "1", "key": "forged", "uidb36": "1", "id": "1", "workspace_id": "1"}


def check_outside_page(stage: Stage, cell: Cell) -> list[str]:
    """Account pages: protected ones redirect to the login, open ones show no tenant data."""
    path, page = cell.route.path(ANY_VALUE), OUTSIDE[cell.route.name]
    answer = send_request(cell.requester, cell.method, path)
    expected = page.expected_status(cell.requester)
    findings = leaks(stage, cell.requester, answer, path)
    if answer.status >= 500 or (cell.method in SAFE and answer.status != expected):
        findings.append(f"expected {expected}, got {answer.status}")
    is_closed = cell.requester.user is None and expected == 302 and not page.is_open
    if is_closed and not answer.location.startswith(LOGIN):
        findings.append(f"was not sent to the log-in, got {answer.status} {answer.location}")
    if answer.wrote_tenant_rows:
        findings.append(f"wrote to {', '.join(sorted(answer.written_tables))}")
    return findings


def check_admin_page(stage: Stage, cell: Cell) -> list[str]:
    """The admin site is open to superusers; for everyone else it does not exist."""
    values = {"app_label": "personas", "content_type_id": "1", "url": "nothing", "id": "1"}
    path = cell.route.path(values | {"object_id": any_key(cell.route)})
    answer = send_request(cell.requester, cell.method, path)
    if cell.requester.name == "superuser":
        return [f"answered {answer.status}"] if answer.status >= 500 else []
    findings = leaks(stage, cell.requester, answer, path)
    if not is_denied(cell, answer):
        findings.append(f"got {answer.status} {answer.location}")
    if answer.wrote_tenant_rows:
        findings.append(f"wrote to {', '.join(sorted(answer.written_tables))}")
    return findings


def is_denied(cell: Cell, answer: Answer) -> bool:
    """Whether an admin page denies access.

    Anonymous goes to the login, others get 404 or a redirect to the admin index.
    """
    to_admin_login = answer.location == f"/{ADMIN}" or answer.location.startswith(f"/{ADMIN}login/?")
    if cell.requester.user is None:
        return answer.status == 302 and (answer.location.startswith(LOGIN) or to_admin_login)
    return answer.status == 404 or (
        answer.status == 302 and to_admin_login and cell.route.name != "admin:login"
    )


def any_key(route: Route) -> str:
    """The key of an existing row of the page's model: `admin:personas_agent_change` names an agent."""
    folder = route.pattern.removeprefix(ADMIN).split("/")
    try:
        model = apps.get_model(folder[0], folder[1])
    except LookupError:
        return "1"
    return str(model._base_manager.values_list("pk", flat=True).first() or 1)
