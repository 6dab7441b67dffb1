"""The author of a change: a user, a bot or the system."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from personas.models import User
    from personas.roles import Permission


@dataclass(frozen=True)
class Actor:
    """The author of a change. Its label is stored in the revision and the audit event of the change."""

    label: str
    user: "User | None" = None
    is_bot: bool = False
    # Whether memories that this bot creates are active without approval.
    can_activate_memories: bool = False
    # Whether the change was made with an API key: a bot key, or an admin key, which acts for a user.
    has_key: bool = False
    # The permissions of the author's API key; None if there is no key (see personas.tenancy.permissions).
    permissions: "frozenset[Permission] | None" = None

    @classmethod
    def person(cls, user: "User") -> "Actor":
        return cls(label=user.email, user=user)

    @classmethod
    def operator(cls, user: "User") -> "Actor":
        """Return an operator who acts at /operator/. The label tells members that it was not one of them."""
        return cls(label=f"operator {user}"[:254], user=user)

    @classmethod
    def bot(cls, name: str, *, can_activate_memories: bool = False) -> "Actor":
        return cls(
            label=f"bot:{name}", is_bot=True, can_activate_memories=can_activate_memories, has_key=True
        )


SYSTEM_ACTOR = Actor(label="dramatis")
