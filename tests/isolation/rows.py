"""Row types of the expectations table: permissions, request data and expected statuses of a page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from personas.roles import Permission
from tests.isolation.cast import Requester, Stage

READ, EDIT = Permission.READ, Permission.EDIT
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SAFE = ("GET", "HEAD")
LOGIN = "/accounts/login/"
Body = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """A workspace page; `read` and `write` are the required permissions, None means 405."""

    read: Permission | None = READ
    write: Permission | None = None
    variant: str = "plain"  # the seeded row used for the target "own"
    body: Callable[[Stage, str], Body] = lambda stage, home: {}
    # URL parameters that name rows: the kind of row and the identifying attribute.
    objects: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # URL parameters that name no row.
    values: Mapping[str, str] = field(default_factory=dict)
    status: int = 302  # of an allowed POST
    owner_status: int = 0  # of an allowed POST of the owner, if it differs
    is_personal: bool = False  # the seeded row belongs to the owner, and other members get 404
    changes: bool = True  # whether an allowed POST must change rows: the positive control

    @property
    def methods(self) -> tuple[str, ...]:
        return (*SAFE, "POST") if self.write else SAFE


def action(write: Permission = EDIT, **more: Any) -> Page:
    """A POST-only page."""
    return Page(read=None, write=write, **more)


@dataclass(frozen=True)
class OutsidePage:
    """A page outside workspaces: the statuses of GET for anonymous and signed-in users."""

    anonymous: int
    signed_in: int
    member: int = 0  # if it differs for members of a workspace
    is_open: bool = False  # redirects anonymous users, but not to the login
    superuser: int = 0  # if it differs for the superuser, the only one with a second factor

    def expected_status(self, requester: Requester) -> int:
        if requester.name == "anonymous":
            return self.anonymous
        if requester.name == "superuser" and self.superuser:
            return self.superuser
        return (self.member if requester.home else 0) or self.signed_in


def form(**fields: Any) -> Page:
    return Page(read=EDIT, write=EDIT, body=lambda stage, home: fields)


OWNERS, KEYS = Permission.MANAGE_MEMBERS, Permission.MANAGE_KEYS
SOURCES, APPROVE = Permission.MANAGE_SOURCES, Permission.APPROVE
AGENT = {"agent": ("agents", "slug")}
PROMPT = {"prompt": ("prompts", "pk")}
RELEASE = {"number": ("releases", "number")}
ENTRY = {"entry": ("ledger", "pk")}
THEN = {"label": "production", "at": "now"}
