"""Expected status of every route for every requester; new routes must be added here."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone

from personas.models import NotificationKind
from personas.roles import Permission, Role, has_permission
from tests.isolation.cast import Requester, Stage
from tests.isolation.file_rows import FILES
from tests.isolation.prompt_rows import PROMPTS, QUICK_START, STUDIO
from tests.isolation.rows import (
    EDIT,
    KEYS,
    OWNERS,
    READ,
    SAFE,
    SOURCES,
    Body,
    OutsidePage,
    Page,
    action,
    form,
)
from tests.isolation.walk import Route
from tests.isolation.webhook_rows import WEBHOOK_PAGES

HOW_TO_ADD = (
    "has no row: say in tests/isolation/expectations.py who may read it and who may write to it "
    "(INSIDE for workspace pages, OUTSIDE for the others)"
)


def unchanged_form(kind: str) -> Callable[[Stage, str], Body]:
    """A valid edit: the values of a new record with the current revision."""

    def body(stage: Stage, home: str) -> Body:
        row = stage.row(home, kind)
        return NEW[kind](stage, home) | {"revision": row.revision}

    return body


def own_agent(stage: Stage, home: str) -> Body:
    return {"agent": stage.row(home, "agents").pk}


def duties_reversed(stage: Stage, home: str) -> Body:
    """The responsibilities in reverse order."""
    agent = stage.row(home, "agents")
    duties = agent.responsibilities.filter(archived_at=None).values_list("pk", flat=True)
    return {"agent": agent.slug, "duty": list(duties)[::-1]}


# Form data that creates a record of each kind; also valid as an edit.
NEW: dict[str, Callable[[Stage, str], Body]] = {
    "agents": lambda s, h: {
        "slug": "fresh",
        "name": "Fresh",
        "layout": "dramatis",
        "release_policy": "automatic",
        "identity": s.row(h, "identities").pk,
        "tools": [s.row(h, "tools").pk],
    },
    "identities": lambda s, h: {"name": "Fresh", "display_name": "Ada"},
    "souls": lambda s, h: {"name": "Fresh", "text": "Calm."},
    "user-profiles": lambda s, h: {"name": "Fresh", "timezone": "UTC"},
    "memories": lambda s, h: {"text": "Fresh.", "status": "active"} | own_agent(s, h),
    "responsibilities": lambda s, h: {"title": "Fresh", "text": "Do it."} | own_agent(s, h),
    "tasks": lambda s, h: {"title": "Fresh", "status": "open", "steps": "[ ] one"} | own_agent(s, h),
    "tools": lambda s, h: {"name": "fresh", "description": "Fresh."},
    "channels": lambda s, h: {"slug": "fresh", "name": "Fresh"},
    "sources": lambda s, h: {
        "name": "Fresh",
        "source_kind": "folder",
        "allowed_folder": s.row(h, "grants").pk,
        "harnesses": ["plain"],
        "approval": "automatic",
    },
    "skills": lambda s, h: {
        "name": "fresh",
        "description": "Fresh.",
        "body": "Do.",
        "agents": [s.row(h, "agents").pk],
    },
}


def family(kind: str, write: Permission = EDIT) -> dict[str, Page]:
    """The pages that every kind of record has."""
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
    if kind != "sources":
        pages["bulk"] = action(write, body=chosen(kind, "archive"))
    return {f"{kind}:{page}": row for page, row in pages.items()}


def chosen(kind: str, verb: str, variant: str = "spare") -> Callable[[Stage, str], Body]:
    """A bulk action on a row of each workspace; only the own row may be affected."""

    def body(stage: Stage, home: str) -> Body:
        ids = [stage.row(one, kind, variant if one == home else "plain").pk for one in stage.workspaces]
        return {"verb": verb, "chosen": ids}

    return body


def file_pages(kind: str) -> dict[str, Page]:
    return {f"{kind}:import": form(name="Taken", text="Words."), f"{kind}:file": Page()}


def new_key(stage: Stage, home: str) -> Body:
    """A key for one agent and one channel that expires tomorrow."""
    agent, channel = stage.row(home, "agents").slug, stage.row(home, "channels").slug
    scopes = {"verbs": ["fetch"], "agents": [agent], "channels": [channel]}
    return {"name": "Fresh", "kind": "bot", "expires_at": tomorrow(), "labels_access": "all", **scopes}


def tomorrow() -> str:
    return (timezone.now() + timedelta(days=1)).date().isoformat()


KEY_ROW = {"key": ("keys", "pk")}
# The response contains the secret, so there is no redirect.
ACCESS: dict[str, Page] = {
    "api-keys:list": Page(read=KEYS),
    "api-keys:export": Page(read=KEYS),
    "api-keys:bulk": action(KEYS, body=lambda s, h: {"chosen": [s.row(h, "keys").pk], "sure": "1"}),
    "api-keys:detail": Page(read=KEYS, objects=KEY_ROW),
    "api-keys:new": Page(read=KEYS, write=KEYS, body=new_key, status=200),
    "api-keys:rotate": Page(
        read=KEYS,
        write=KEYS,
        objects=KEY_ROW,
        body=lambda s, h: {"name": "Fresh", "hours": "1", "expires_at": tomorrow()},
        status=200,
    ),
    "api-keys:revoke": Page(read=KEYS, write=KEYS, objects=KEY_ROW),
}
INSIDE: dict[str, Page] = {
    "home": Page(),
    "audit": Page(),
    "audit-event": Page(objects={"key": ("audit", "pk")}),
    "audit-export": Page(),
    "events": Page(),
    "events-live": Page(),
    # Members see their own notifications only; the seeded one is the owner's.
    "notifications:list": Page(),
    "notifications:live": Page(),
    "notifications:bell": Page(),
    "notifications:read-all": action(READ, changes=False),
    "notifications:preferences": Page(
        write=READ, body=lambda s, h: dict.fromkeys(NotificationKind.values, "none"), status=302
    ),
    "notifications:open": action(READ, is_personal=True, objects={"key": ("notifications", "pk")}),
    "notifications:read": action(READ, is_personal=True, objects={"key": ("notifications", "pk")}),
    "workspace-settings": Page(
        read=OWNERS,
        write=OWNERS,
        body=lambda s, h: {"name": "Renamed", "default_release_policy": "reviewed"},
    ),
    "workspace-slug": action(OWNERS, body=lambda s, h: {"slug": "renamed"}),
    # It counts for the owner of the stage already.
    "take-over-workspace": action(OWNERS, changes=False),
    # A wrong name: with the right one, the workspace would be gone for the next request.
    "delete-workspace": Page(
        read=OWNERS, write=OWNERS, body=lambda s, h: {"name": "Another"}, status=422, changes=False
    ),
    "members:list": Page(),
    "members:export": Page(),
    "members:invite": action(OWNERS, body=lambda s, h: {"email": "new@example.com", "role": "viewer"}),
    # The last owner cannot leave and gets a message; other members leave.
    "members:leave": action(READ, changes=False),
    "members:resend": action(OWNERS),
    "members:withdraw": action(OWNERS),
    "members:role": action(OWNERS, body=lambda s, h: {"role": "editor"}),
    "members:hand-over": action(OWNERS),
    "members:remove": action(OWNERS),
    **ACCESS,
    **WEBHOOK_PAGES,
    **family("agents"),
    "agents:import": form(text='{"name": "Fresh", "role": "You are Fresh."}'),
    "agents:memory": Page(),
    "agents:add-memory": action(body=lambda s, h: {"text": "Fresh.", "status": "active"}),
    "agents:tools": Page(),
    **family("identities"),
    **file_pages("identities"),
    **family("souls"),
    **file_pages("souls"),
    **family("user-profiles"),
    **file_pages("user-profiles"),
    **family("memories"),
    "memories:board": Page(),
    # The page shows the result, so there is no redirect.
    "memories:import": replace(form(text='["Fresh."]'), status=200),
    "memories:decide": action(Permission.APPROVE, body=chosen("memories", "approve", "proposed")),
    "memories:approve": action(Permission.APPROVE, variant="proposed"),
    "memories:supersede": action(body=lambda s, h: {"successor": s.row(h, "memories", "spare").pk}),
    **family("responsibilities"),
    "responsibilities:order": action(body=duties_reversed, status=204),
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
    **QUICK_START,
    **STUDIO,
}

OUTSIDE: dict[str, OutsidePage] = {
    "healthz": OutsidePage(200, 200),
    "readyz": OutsidePage(200, 200),
    # In development open to localhost, and so to every requester here; other hosts are tested elsewhere.
    "metrics": OutsidePage(200, 200),
    # Only with DEBUG.
    "styleguide": OutsidePage(404, 404),
    # Only in development, for browsers on the same machine.
    "dev-mail": OutsidePage(200, 200),
    "api:schema": OutsidePage(200, 200),
    "api:docs": OutsidePage(200, 200),
    "api:errors": OutsidePage(200, 200),
    "start": OutsidePage(302, 200, member=302),
    "new-workspace": OutsidePage(302, 200),
    # POST only; who can restore which workspace is tested in tests/personas/workspaces.
    "restore-workspace": OutsidePage(302, 405),
    "profile": OutsidePage(302, 200),
    "security-events": OutsidePage(302, 200),
    # A forged token is 410 for all; real tokens are tested separately.
    "invitation": OutsidePage(410, 410),
    "other-account": OutsidePage(302, 405),
    "account_login": OutsidePage(200, 302),
    "account_logout": OutsidePage(302, 200, is_open=True),
    "account_inactive": OutsidePage(200, 200),
    "account_signup": OutsidePage(200, 302),
    # The test users have no password, and only the superuser has a second factor.
    "account_reauthenticate": OutsidePage(302, 403, superuser=302),
    "account_email": OutsidePage(302, 200),
    "account_email_verification_sent": OutsidePage(200, 200),
    "account_change_password": OutsidePage(302, 302),
    "account_set_password": OutsidePage(302, 200),
    "account_reset_password": OutsidePage(200, 200),
    "account_confirm_login_code": OutsidePage(302, 302),
    "account_confirm_email": OutsidePage(200, 200),
    "account_reset_password_from_key_done": OutsidePage(200, 200),
    "account_reset_password_from_key": OutsidePage(200, 200),
    "account_reset_password_done": OutsidePage(200, 200),
    "mfa_index": OutsidePage(302, 200),
    "mfa_authenticate": OutsidePage(302, 302),
    "mfa_reauthenticate": OutsidePage(302, 403, superuser=200),
    "mfa_activate_totp": OutsidePage(302, 200, superuser=302),
    "mfa_deactivate_totp": OutsidePage(302, 404, superuser=302),
    "mfa_view_recovery_codes": OutsidePage(302, 404),
    "mfa_generate_recovery_codes": OutsidePage(302, 200, superuser=302),
    "mfa_download_recovery_codes": OutsidePage(302, 404),
    "mfa_list_webauthn": OutsidePage(302, 200),
    "mfa_add_webauthn": OutsidePage(302, 200, superuser=302),
    "mfa_reauthenticate_webauthn": OutsidePage(302, 403, superuser=302),
    "mfa_remove_webauthn": OutsidePage(302, 404, superuser=302),
    "mfa_edit_webauthn": OutsidePage(302, 404, superuser=302),
    "mfa_login_webauthn": OutsidePage(302, 302, is_open=True),
    "usersessions_list": OutsidePage(302, 200),
}

# One rule covers all admin pages, so they need no rows.
ADMIN = "operator/"


def find_routes_without_row(routes: list[Route]) -> list[str]:
    """Find routes without a row."""
    return [f"{route.name} ({route.pattern}) {HOW_TO_ADD}" for route in routes if not is_expected(route)]


def is_expected(route: Route) -> bool:
    if route.is_inside:
        return route.name in INSIDE
    return route.name in OUTSIDE or route.pattern.startswith(ADMIN)


def find_rows_without_route(routes: list[Route]) -> list[str]:
    names = {route.name for route in routes}
    return [f"{name} has a row and no route" for name in (*INSIDE, *OUTSIDE) if name not in names]


def expected_inside(page: Page, requester: Requester, method: str, target: str) -> int:
    """The status of a workspace page for this requester: the first check that fails, or success."""
    checks = {
        302: requester.name == "anonymous",
        404: not requester.home or target in {"elsewhere", "nowhere"},
        405: method not in page.methods,
        403: not has_permission(requester.role, page.write or page.read or READ),
    }
    if denied := next((status for status, is_denied in checks.items() if is_denied), 0):
        return denied
    if method in SAFE and page.read is None:
        return 405
    inside = page.status if method == "POST" else 200
    if method == "POST" and requester.role == Role.OWNER and page.owner_status:
        inside = page.owner_status
    is_denied = page.is_personal and requester.role != Role.OWNER
    return inside if target == "own" and not is_denied else 404
