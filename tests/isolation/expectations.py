"""What every route must answer, and to whom: the table that a new route has to be added to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from personas.roles import Permission, may
from prompts.forms.releases import choice_of
from skills.bundles import write_zip
from tests.isolation.cast import Asker, Stage
from tests.isolation.walk import Route

READ, EDIT = Permission.READ, Permission.EDIT
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SAFE = ("GET", "HEAD")
LOGIN = "/accounts/login/"
HOW_TO_ADD = (
    "has no row: say in tests/isolation/expectations.py who may read it and who may write to it "
    "(INSIDE for workspace pages, OUTSIDE for the others)"
)
Body = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """A page of a workspace; `read` and `write` name the permission each takes, None means 405."""

    read: Permission | None = READ
    write: Permission | None = None
    variant: str = "plain"  # which of the seeded rows the own column asks for
    body: Callable[[Stage, str], Body] = lambda stage, home: {}
    # What its address names: the kind of row and the attribute that stands there, by parameter.
    objects: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Parameters that name no row.
    values: Mapping[str, str] = field(default_factory=dict)
    status: int = 302  # of an allowed POST
    changes: bool = True  # whether an allowed POST must leave a trace: the positive control

    @property
    def methods(self) -> tuple[str, ...]:
        return (*SAFE, "POST") if self.write else SAFE


def action(write: Permission = EDIT, **more: Any) -> Page:
    """A button: nothing to see, only to do."""
    return Page(read=None, write=write, **more)


@dataclass(frozen=True)
class Place:
    """A page outside workspaces: what a visitor and a signed-in person get for GET."""

    anonymous: int
    signed_in: int
    member: int = 0  # where having a workspace makes a difference
    is_open: bool = False  # leads visitors on, but not to the log-in

    def wanted(self, asker: Asker) -> int:
        if asker.name == "anonymous":
            return self.anonymous
        return (self.member if asker.home else 0) or self.signed_in


def form(**fields: Any) -> Page:
    return Page(read=EDIT, write=EDIT, body=lambda stage, home: fields)


def unchanged_form(kind: str) -> Callable[[Stage, str], Body]:
    """An edit that changes one word; the rest is what the form shows."""

    def body(stage: Stage, home: str) -> Body:
        row = stage.row(home, kind)
        return NEW[kind](stage, home) | {"revision": row.revision}

    return body


def own_agent(stage: Stage, home: str) -> Body:
    return {"agent": stage.row(home, "agents").pk}


# What makes a new record of each kind; also good as an edit.
NEW: dict[str, Callable[[Stage, str], Body]] = {
    "agents": lambda s, h: {
        "slug": "fresh",
        "name": "Fresh",
        "layout": "dramatis",
        "release_policy": "automatic",
        "identity": s.row(h, "identities").pk,
        "tools": [s.row(h, "tools").pk],
    },
    "identities": lambda s, h: {"label": "Fresh", "name": "Ada"},
    "souls": lambda s, h: {"label": "Fresh", "text": "Calm."},
    "user-profiles": lambda s, h: {"label": "Fresh", "timezone": "UTC"},
    "memories": lambda s, h: {"text": "Fresh.", "state": "active"} | own_agent(s, h),
    "responsibilities": lambda s, h: {"title": "Fresh", "text": "Do it."} | own_agent(s, h),
    "tasks": lambda s, h: {"title": "Fresh", "status": "open", "steps": "[ ] one"} | own_agent(s, h),
    "tools": lambda s, h: {"name": "fresh", "description": "Fresh."},
    "channels": lambda s, h: {"slug": "fresh", "name": "Fresh"},
    "sources": lambda s, h: {
        "label": "Fresh",
        "source_kind": "folder",
        "grant": s.row(h, "grants").pk,
        "harnesses": ["plain"],
        "adoption": "automatic",
    },
    "skills": lambda s, h: {
        "name": "fresh",
        "description": "Fresh.",
        "body": "Do.",
        "agents": [s.row(h, "agents").pk],
    },
}


def family(kind: str, write: Permission = EDIT) -> dict[str, Page]:
    """The pages every kind of record has."""
    pages = {
        "list": Page(),
        "new": Page(read=write, write=write, body=NEW[kind]),
        "detail": Page(),
        "edit": Page(read=write, write=write, body=unchanged_form(kind)),
        "archive": action(write, variant="spare"),
        "restore": action(write, variant="archived"),
        "history": Page(),
        "revision": Page(),
        "revert": action(write),
    }
    return {f"{kind}:{page}": row for page, row in pages.items()}


def file_pages(kind: str) -> dict[str, Page]:
    return {f"{kind}:import": form(label="Taken", text="Words."), f"{kind}:file": Page()}


OWNERS, KEYS = Permission.MANAGE_MEMBERS, Permission.MANAGE_KEYS
SOURCES, APPROVE = Permission.MANAGE_SOURCES, Permission.APPROVE
AGENT = {"agent": ("agents", "slug")}
PROMPT = {"prompt": ("prompts", "pk")}
RELEASE = {"number": ("releases", "number")}
ENTRY = {"entry": ("ledger", "pk")}
THEN = {"label": "production", "at": "now"}


def seen(variant: str) -> Callable[[Stage, str], Body]:
    """The digest that the person looked at."""
    return lambda s, h: {"digest": s.row(h, "files", variant).newest.digest}


def waiving(stage: Stage, home: str) -> Body:
    until = (timezone.now() + timedelta(days=3)).date().isoformat()
    return seen("quarantined")(stage, home) | {"reason": "A quotation.", "until": until}


def zipped(stage: Stage, home: str) -> Body:
    return {"archive": SimpleUploadedFile("a.zip", write_zip([("AGENTS.md", b"Hi.")]))}


def own_copy(stage: Stage, home: str) -> Body:
    rules = '{"rules": [{"kind": "context", "paths": ["FRESH.md"]}]}'
    revision = stage.row(home, "rule-sets").revision
    return {"revision": revision, "kinds": ["context", "skill"], "rules": rules}


FILES: dict[str, Page] = {
    "sources:refresh": action(),
    "sources:live": Page(),
    "sources:upload": action(variant="pushed", body=zipped),
    "skills:import": form(text="---\nname: taken-in\ndescription: Taken.\n---\n\nDo.\n"),
    "skills:copy": action(variant="skill", objects={"file_id": ("files", "pk")}),
    "skills:export": Page(),
    "skills:check": action(body=lambda s, h: {"name": "Bad Name"}, status=200, changes=False),
    "skills:trust-policy": action(SOURCES, body=lambda s, h: {"needed": "0"}),
    "rule-sets:list": Page(),
    # Every workspace has all the rule sets, its own or the built-in ones: their names are no secret.
    "rule-sets:detail": Page(values={"key": "plain"}),
    "rule-sets:edit": Page(read=SOURCES, write=SOURCES, values={"key": "plain"}, body=own_copy),
    "rule-sets:reset": action(SOURCES, values={"key": "plain"}),
    "rule-sets:restore": action(SOURCES, values={"key": "plain"}, changes=False),
    "rule-sets:history": Page(values={"key": "plain"}),
    "rule-sets:revision": Page(values={"key": "plain"}),
    "rule-sets:revert": action(SOURCES, values={"key": "plain"}, changes=False),
    "inbox:list": Page(),
    "inbox:live": Page(),
    "inbox:adopt": action(changes=False),
    "files:detail": Page(),
    "files:revision": Page(),
    "files:raw": Page(),
    "files:adopt": action(body=seen("plain")),
    "files:ignore": action(),
    "files:heed": action(variant="ignored"),
    "files:waive": action(APPROVE, variant="quarantined", body=waiving),
    "files:end-waiver": action(APPROVE, variant="waived", objects={"waiver": ("waivers", "pk")}),
    "files:reach": action(variant="skill", body=lambda s, h: {"reach": "all"}),
    "files:export": Page(variant="skill"),
    "contexts:detail": Page(objects=AGENT),
    "contexts:live": Page(objects=AGENT),
    "contexts:choose": action(
        objects=AGENT,
        body=lambda s, h: {"source": "", "harness": "pi", "revision": s.row(h, "agents").revision},
    ),
    "contexts:inherit": action(objects=AGENT),
}

PROMPTS: dict[str, Page] = {
    "versions:list": Page(objects=AGENT),
    "versions:detail": Page(objects=PROMPT),
    "versions:text": Page(objects=PROMPT),
    "versions:json": Page(objects=PROMPT),
    "versions:diff": Page(objects=PROMPT, values={"before": "1", "after": "2"}),
    "versions:rebuild": action(objects=AGENT),
    "versions:roll-back": action(APPROVE, objects=PROMPT, body=lambda s, h: {"note": "Back."}),
    "versions:follow": action(APPROVE, objects=PROMPT),
    "versions:label": action(objects=PROMPT, body=lambda s, h: {"label": "fresh"}),
    "versions:remove-label": action(objects=PROMPT, values={"label": "no-such"}, changes=False),
    "rebuilding:live": Page(),
    "holdings:record": Page(objects={"key": ("souls", "pk")}, values={"kind": "soul"}),
    "time-machine:find": Page(),
    "time-machine:fetch": Page(objects=ENTRY),
    "time-machine:fetch-evidence": Page(objects=ENTRY),
    "time-machine:fetch-text": Page(objects=ENTRY),
    "time-machine:moment": Page(objects=PROMPT, values=THEN),
    "time-machine:moment-evidence": Page(objects=PROMPT, values=THEN),
    "time-machine:moment-text": Page(objects=PROMPT, values=THEN),
    "ledger:list": Page(),
    "ledger:stale": Page(),
    "verify:show": Page(),
    "verify:live": Page(),
    # One look is under way already.
    "verify:run": action(changes=False),
    "verify:key": Page(objects={"key": ("signing-keys", "pk")}),
    "verify:checkpoints": Page(),
    "releases:list": Page(),
    "releases:new": Page(
        read=EDIT,
        write=EDIT,
        body=lambda s, h: {"prompts": [choice_of(s.row(h, "prompts"))], "message": "Go"},
    ),
    "releases:detail": Page(objects=RELEASE),
    "releases:approve": action(APPROVE, objects=RELEASE, changes=False),
    "releases:carry-out": action(objects=RELEASE, changes=False),
    "releases:reject": action(APPROVE, objects=RELEASE, body=lambda s, h: {"reason": "No."}),
    "releases:withdraw": action(objects=RELEASE),
    "releases:override": action(KEYS, objects=RELEASE, body=lambda s, h: {"reason": "Fire."}),
    "labels:list": Page(),
    "labels:protect": action(OWNERS, body=lambda s, h: {"label": "fresh", "protected": "1"}),
    "impact:new": action(
        values={"family": "memories"},
        body=lambda s, h: {"text": "Fresh.", "state": "active"},
        status=200,
        changes=False,
    ),
    "impact:edit": action(
        objects={"key": ("souls", "slug")},
        values={"family": "souls"},
        body=lambda s, h: {"label": "Fresh", "text": "Calm."},
        status=200,
        changes=False,
    ),
    "prompt-settings:list": Page(),
    "prompt-settings:workspace": form(token_budget=900),
    "prompt-settings:agent": Page(
        read=EDIT, write=EDIT, objects=AGENT, body=lambda s, h: {"token_budget": 900}
    ),
    "prompt-settings:origins": Page(objects=AGENT),
    "prompt-settings:channel": Page(
        read=EDIT,
        write=EDIT,
        objects={"channel": ("channels", "slug")},
        body=lambda s, h: {"token_budget": 900},
    ),
    "erasures:list": Page(),
    "erasures:detail": Page(),
    "erasures:erase": Page(
        read=KEYS,
        write=KEYS,
        objects={"key": ("memories", "pk")},
        values={"family": "memories"},
        body=lambda s, h: {"reason": "Asked for.", "sure": "on"},
    ),
}


def new_key(stage: Stage, home: str) -> Body:
    """A key for one agent, on one channel; it lasts until tomorrow."""
    agent, channel = stage.row(home, "agents").slug, stage.row(home, "channels").slug
    scopes = {"verbs": ["fetch"], "agents": [agent], "channels": [channel]}
    return {"name": "Fresh", "kind": "bot", "expires_at": tomorrow(), **scopes}


def tomorrow() -> str:
    return (timezone.now() + timedelta(days=1)).date().isoformat()


# The secret is in the answer itself, so there is nowhere to go on to.
ACCESS: dict[str, Page] = {
    "keys:list": Page(read=KEYS),
    "keys:detail": Page(read=KEYS),
    "keys:new": Page(read=KEYS, write=KEYS, body=new_key, status=200),
    "keys:rotate": Page(
        read=KEYS,
        write=KEYS,
        body=lambda s, h: {"name": "Fresh", "hours": "1", "expires_at": tomorrow()},
        status=200,
    ),
    "keys:revoke": Page(read=KEYS, write=KEYS),
}
INSIDE: dict[str, Page] = {
    "home": Page(),
    "audit": Page(),
    "workspace-settings": Page(read=OWNERS, write=OWNERS, body=lambda s, h: {"name": "Renamed"}),
    "members:list": Page(),
    "members:invite": action(OWNERS, body=lambda s, h: {"email": "new@example.com", "role": "viewer"}),
    # The last owner is refused, with a message; everybody else is out.
    "members:leave": action(READ, changes=False),
    "members:withdraw": action(OWNERS),
    "members:role": action(OWNERS, body=lambda s, h: {"role": "editor"}),
    "members:hand-over": action(OWNERS),
    "members:remove": action(OWNERS),
    **ACCESS,
    **family("agents"),
    **family("identities"),
    **file_pages("identities"),
    **family("souls"),
    **file_pages("souls"),
    **family("user-profiles"),
    **file_pages("user-profiles"),
    **family("memories"),
    "memories:approve": action(Permission.APPROVE, variant="proposed"),
    "memories:supersede": action(body=lambda s, h: {"successor": s.row(h, "memories", "spare").pk}),
    **family("responsibilities"),
    "responsibilities:up": action(variant="spare"),
    "responsibilities:down": action(),
    **family("tasks"),
    "tasks:tick": action(body=lambda s, h: {"is_done": "1"}),
    **family("tools"),
    **family("channels"),
    **family("skills"),
    **family("sources", SOURCES),
    **FILES,
    **PROMPTS,
}

OUTSIDE: dict[str, Place] = {
    "healthz": Place(200, 200),
    "readyz": Place(200, 200),
    "api:schema": Place(200, 200),
    "api:docs": Place(200, 200),
    "api:errors": Place(200, 200),
    "start": Place(302, 200, member=302),
    "new-workspace": Place(302, 200),
    "profile": Place(302, 200),
    # A forged token is 410 for all; real ones are asked for apart.
    "invitation": Place(410, 410),
    "other-account": Place(302, 405),
    "account_login": Place(200, 302),
    "account_logout": Place(302, 200, is_open=True),
    "account_inactive": Place(200, 200),
    "account_signup": Place(200, 302),
    # The cast has neither password nor second factor to give once more.
    "account_reauthenticate": Place(302, 403),
    "account_email": Place(302, 200),
    "account_email_verification_sent": Place(200, 200),
    "account_change_password": Place(302, 302),
    "account_set_password": Place(302, 200),
    "account_reset_password": Place(200, 200),
    "account_confirm_login_code": Place(302, 302),
    "account_confirm_email": Place(200, 200),
    "account_reset_password_from_key_done": Place(200, 200),
    "account_reset_password_from_key": Place(200, 200),
    "account_reset_password_done": Place(200, 200),
    "mfa_index": Place(302, 200),
    "mfa_authenticate": Place(302, 302),
    "mfa_reauthenticate": Place(302, 403),
    "mfa_activate_totp": Place(302, 200),
    "mfa_deactivate_totp": Place(302, 404),
    "mfa_view_recovery_codes": Place(302, 404),
    "mfa_generate_recovery_codes": Place(302, 200),
    "mfa_download_recovery_codes": Place(302, 404),
    "mfa_list_webauthn": Place(302, 200),
    "mfa_add_webauthn": Place(302, 200),
    "mfa_reauthenticate_webauthn": Place(302, 403),
    "mfa_remove_webauthn": Place(302, 404),
    "mfa_edit_webauthn": Place(302, 404),
    "mfa_login_webauthn": Place(302, 302, is_open=True),
    "usersessions_list": Place(302, 200),
}

# The back office has one rule for all of it, so its pages need no rows of their own.
OPERATORS = "operator/"


def without_a_row(routes: list[Route]) -> list[str]:
    """The routes that nobody has said anything about."""
    return [f"{route.name} ({route.pattern}) {HOW_TO_ADD}" for route in routes if not is_expected(route)]


def is_expected(route: Route) -> bool:
    if route.is_inside:
        return route.name in INSIDE
    return route.name in OUTSIDE or route.pattern.startswith(OPERATORS)


def rows_without_a_route(routes: list[Route]) -> list[str]:
    names = {route.name for route in routes}
    return [f"{name} has a row and no route" for name in (*INSIDE, *OUTSIDE) if name not in names]


def expected_inside(page: Page, asker: Asker, method: str, target: str) -> int:
    """The status a workspace page owes to this asker: the first door that is shut, or what is inside."""
    doors = {
        302: asker.name == "anonymous",
        404: not asker.home or target in {"elsewhere", "nowhere"},
        405: method not in page.methods,
        403: not may(asker.role, page.write or page.read or READ),
    }
    if shut := next((status for status, is_shut in doors.items() if is_shut), 0):
        return shut
    if method in SAFE and page.read is None:
        return 405
    inside = page.status if method == "POST" else 200
    return inside if target == "own" else 404
