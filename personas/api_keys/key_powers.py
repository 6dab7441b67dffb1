"""What a key may do in the end: its kind, its scopes and what its maker may do now, taken together."""

from collections.abc import Mapping
from typing import Any, Protocol

from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import APPROVE, MANAGE, READ, WRITE, verbs_of
from personas.roles import Permission, may


class Scoped(Protocol):
    """As much of a key as its power depends on."""

    @property
    def kind(self) -> str: ...
    @property
    def scopes(self) -> Mapping[str, Any]: ...


# A bot writes its own things only (proposes, ticks, reports, pushes): that verb opens those doors by itself,
# and never the records that editors keep. So it is not worth the permission to edit.
GIVES: dict[str, dict[str, tuple[Permission, ...]]] = {
    BOT: {READ: (Permission.READ,)},
    ADMIN: {
        READ: (Permission.READ,),
        WRITE: (Permission.EDIT,),
        APPROVE: (Permission.APPROVE,),
        MANAGE: (Permission.MANAGE_SOURCES, Permission.MANAGE_KEYS, Permission.MANAGE_MEMBERS),
    },
}


def power_of(key: Scoped, role: str) -> frozenset[Permission]:
    """The permissions of a key whose maker has this role now; an empty role is that of a stranger."""
    verbs = verbs_of(key.scopes, key.kind)
    given = {one for verb, gives in GIVES.get(key.kind, {}).items() if verb in verbs for one in gives}
    # A bot's key is the workspace's: it stays what it is, whoever made it.
    return frozenset(given if key.kind == BOT else {one for one in given if may(role, one)})
