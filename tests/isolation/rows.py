"""What a row of the table says: who may read a page, who may write to it, and what is sent there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from personas.roles import Permission
from tests.isolation.cast import Asker, Stage

READ, EDIT = Permission.READ, Permission.EDIT
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SAFE = ("GET", "HEAD")
LOGIN = "/accounts/login/"
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


OWNERS, KEYS = Permission.MANAGE_MEMBERS, Permission.MANAGE_KEYS
SOURCES, APPROVE = Permission.MANAGE_SOURCES, Permission.APPROVE
AGENT = {"agent": ("agents", "slug")}
PROMPT = {"prompt": ("prompts", "pk")}
RELEASE = {"number": ("releases", "number")}
ENTRY = {"entry": ("ledger", "pk")}
THEN = {"label": "production", "at": "now"}
