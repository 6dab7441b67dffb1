"""What a key may be used for: verb × agent × channel × label; an absent list means all."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from django.utils.translation import gettext as _

from personas.api_keys.format import ADMIN, BOT
from personas.models import Workspace
from personas.roles import Permission, has_permission

# Take a prompt; take one filled with the facts of a call; look at records; change records.
FETCH, RENDER, READ, WRITE = "fetch", "render", "read", "write"
# Decide on what others proposed; see to sources, keys and members.
APPROVE, MANAGE = "approve", "manage"
VERBS = (FETCH, RENDER, READ, WRITE, APPROVE, MANAGE)
# All that a key of each kind may ever do: to decide and to manage takes a person, or a key that acts for one.
VERBS_BY_KIND = {BOT: (FETCH, RENDER, READ, WRITE), ADMIN: VERBS}
SCOPE_DIMENSIONS = ("verbs", "agents", "channels", "labels")
MAX_SCOPE_ENTRIES = 200


class BadScopes(ValueError):
    """Scopes that say nothing, or nothing sensible; the message is for people."""


def is_in_scope(
    scopes: Mapping[str, Any],
    verb: str,
    agent: str = "",
    channel: str = "",
    label: str = "",
    *,
    kind: str = BOT,
) -> bool:
    """Whether a key with these scopes may do this; what the call does not touch is not asked about."""
    if verb and verb not in get_key_verbs(scopes, kind):
        return False
    asked = zip(SCOPE_DIMENSIONS[1:], (agent, channel, label), strict=True)
    return all(not word or name not in scopes or word in scopes[name] for name, word in asked)


def get_key_verbs(scopes: Mapping[str, Any], kind: str) -> frozenset[str]:
    """The verbs of a key; no list gives it more than its kind has."""
    own = frozenset(VERBS_BY_KIND.get(kind, ()))
    return own & frozenset(scopes["verbs"]) if "verbs" in scopes else own


def normalise_scopes(scopes: object, kind: str = BOT) -> dict[str, list[str]]:
    """The scopes in one order and without repeats."""
    if not isinstance(scopes, Mapping):
        raise BadScopes(_("Scopes are an object of lists."))
    if strange := sorted(set(map(str, scopes)) - set(SCOPE_DIMENSIONS)):
        raise BadScopes(_("“%(name)s” is not something a key can be limited to.") % {"name": strange[0]})
    made = {name: _validate_scope_list(name, scopes[name]) for name in SCOPE_DIMENSIONS if name in scopes}
    _check_verbs(made.get("verbs", []), kind)
    return made


def find_wider_dimension(asked: Mapping[str, Any], own: Mapping[str, Any], kind: str) -> str:
    """The first dimension in which scopes ask for more than one's own give; empty when they do not."""
    if not get_key_verbs(asked, kind) <= get_key_verbs(own, ADMIN):
        return "verbs"
    for name in SCOPE_DIMENSIONS[1:]:
        if name in own and (name not in asked or not set(asked[name]) <= set(own[name])):
            return name
    return ""


def _check_verbs(verbs: list[str], kind: str) -> None:
    if unknown := sorted(set(verbs) - set(VERBS)):
        raise BadScopes(
            _("“%(verb)s” is not a verb. There are: %(verbs)s.")
            % {"verb": unknown[0], "verbs": ", ".join(VERBS)}
        )
    if beyond := [verb for verb in VERBS if verb in verbs and verb not in VERBS_BY_KIND[kind]]:
        raise BadScopes(_("A bot's key may not %(verb)s: that takes an admin key.") % {"verb": beyond[0]})


def _validate_scope_list(name: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) and word for word in value):
        raise BadScopes(_("“%(name)s” must be a list of words.") % {"name": name})
    if not value:
        # An empty list would be a key that opens nothing, and is easily taken for one that opens all.
        raise BadScopes(_("“%(name)s” is empty. Leave it out to allow all.") % {"name": name})
    if len(value) > MAX_SCOPE_ENTRIES:
        raise BadScopes(
            _("“%(name)s” has more than %(most)s entries.") % {"name": name, "most": MAX_SCOPE_ENTRIES}
        )
    return sorted(set(value))


class ScopedKey(Protocol):
    """As much of a key as its power depends on."""

    @property
    def kind(self) -> str: ...
    @property
    def scopes(self) -> Mapping[str, Any]: ...


# A bot writes its own things only (proposes, ticks, reports, pushes): that verb opens those doors by itself,
# and never the records that editors keep. So it is not worth the permission to edit.
VERB_PERMISSIONS: dict[str, dict[str, tuple[Permission, ...]]] = {
    BOT: {READ: (Permission.READ,)},
    ADMIN: {
        READ: (Permission.READ,),
        WRITE: (Permission.EDIT,),
        APPROVE: (Permission.APPROVE,),
        MANAGE: (Permission.MANAGE_SOURCES, Permission.MANAGE_KEYS, Permission.MANAGE_MEMBERS),
    },
}


def resolve_permissions(key: ScopedKey, role: str) -> frozenset[Permission]:
    """The permissions of a key whose maker has this role now; an empty role is that of a stranger."""
    verbs = get_key_verbs(key.scopes, key.kind)
    given = {
        one for verb, gives in VERB_PERMISSIONS.get(key.kind, {}).items() if verb in verbs for one in gives
    }
    # A bot's key is the workspace's: it stays what it is, whoever made it.
    return frozenset(given if key.kind == BOT else {one for one in given if has_permission(role, one)})


# These two every prompt has or will have.
BUILT_IN_LABELS = ("latest", "production")
LABEL_SOURCES: list[Callable[[Workspace], Iterable[str]]] = []


def list_scope_labels(workspace: Workspace) -> list[str]:
    return sorted({*BUILT_IN_LABELS, *(name for source in LABEL_SOURCES for name in source(workspace))})
