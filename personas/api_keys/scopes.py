"""Scopes of API keys: lists of the actions ("verbs"), agents, channels and labels that a key may be used for.

If a list is absent, the key is not limited in that dimension.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from django.utils.translation import gettext as _

from personas.api_keys.format import ADMIN, BOT
from personas.models import Workspace
from personas.roles import Permission, has_permission

# Actions: fetch a prompt, render a prompt with the facts of a request, read records, change records.
FETCH, RENDER, READ, WRITE = "fetch", "render", "read", "write"
# Actions: approve proposals of others; manage sources, keys and members.
APPROVE, MANAGE = "approve", "manage"
# Action: write active memories, which reach prompts without approval. Without it, a bot proposes memories.
ACTIVATE = "activate"
# Action: release without approval, in an emergency.
OVERRIDE = "override"
VERBS = (FETCH, RENDER, READ, WRITE, APPROVE, MANAGE, OVERRIDE, ACTIVATE)
# Actions that each kind of key can have. Only admin keys, which act for a user, can approve, manage and
# override. Only bot keys need `activate`: an admin key with `write` creates active memories, as its user
# does.
VERBS_BY_KIND = {
    BOT: (FETCH, RENDER, READ, WRITE, ACTIVATE),
    ADMIN: (FETCH, RENDER, READ, WRITE, APPROVE, MANAGE, OVERRIDE),
}
# The actions of a new key if its creator names none.
DEFAULT_VERBS = (FETCH, RENDER)
# Actions that a key has only if its scopes list them: an absent list of actions does not include them.
EXPLICIT_VERBS = frozenset({ACTIVATE, OVERRIDE})
SCOPE_DIMENSIONS = ("verbs", "agents", "channels", "labels")
MAX_SCOPE_ENTRIES = 200


class BadScopes(ValueError):
    """Invalid scopes; the message is shown to the user."""


def find_missing_scope(
    scopes: Mapping[str, Any],
    verb: str,
    agent: str = "",
    channel: str = "",
    label: str = "",
    *,
    kind: str = BOT,
) -> str:
    """Return the first dimension, such as "agents", in which the scopes do not allow this; empty if none.

    Only nonempty arguments are checked.
    """
    if verb and verb not in get_key_verbs(scopes, kind):
        return "verbs"
    for name, value in zip(SCOPE_DIMENSIONS[1:], (agent, channel, label), strict=True):
        if value and name in scopes and value not in scopes[name]:
            return name
    return ""


def get_key_verbs(scopes: Mapping[str, Any], kind: str) -> frozenset[str]:
    """Return the actions that the scopes allow, limited to those that this kind of key can have.

    Without a list of actions in the scopes, these are all except EXPLICIT_VERBS.
    """
    allowed = frozenset(VERBS_BY_KIND.get(kind, ()))
    return allowed & frozenset(scopes["verbs"]) if "verbs" in scopes else allowed - EXPLICIT_VERBS


def can_activate_memories(scopes: Mapping[str, Any], kind: str) -> bool:
    """Return whether memories that a bot creates with this key are active without approval."""
    return {WRITE, ACTIVATE} <= get_key_verbs(scopes, kind)


def normalise_scopes(scopes: object, kind: str = BOT) -> dict[str, list[str]]:
    """Validate scopes. Return them sorted and without duplicates, or raise BadScopes."""
    if not isinstance(scopes, Mapping):
        raise BadScopes(_("Scopes must be an object whose values are lists."))
    if unknown := sorted(set(map(str, scopes)) - set(SCOPE_DIMENSIONS)):
        raise BadScopes(_("“%(name)s” is not a valid scope.") % {"name": unknown[0]})
    normalised = {
        name: _validate_scope_list(name, scopes[name]) for name in SCOPE_DIMENSIONS if name in scopes
    }
    _check_verbs(normalised.get("verbs", []), kind)
    return normalised


def find_wider_dimension(requested: Mapping[str, Any], own: Mapping[str, Any], kind: str) -> str:
    """Return the first dimension, such as "agents", in which the scopes `requested` allow more than `own`.

    Return an empty string if there is none. `kind` is the kind of the requested key; `own` belongs to an
    admin key.
    """
    own_verbs = get_key_verbs(own, ADMIN)
    # An admin key that may write creates active memories itself, so it can give this action to a bot.
    own_verbs |= {ACTIVATE} if WRITE in own_verbs else frozenset()
    if not get_key_verbs(requested, kind) <= own_verbs:
        return "verbs"
    for name in SCOPE_DIMENSIONS[1:]:
        if name in own and (name not in requested or not set(requested[name]) <= set(own[name])):
            return name
    return ""


def _check_verbs(verbs: list[str], kind: str) -> None:
    if unknown := sorted(set(verbs) - set(VERBS)):
        raise BadScopes(
            _("“%(verb)s” is not a valid permission. Choose from: %(verbs)s.")
            % {"verb": unknown[0], "verbs": ", ".join(VERBS)}
        )
    if beyond := [verb for verb in VERBS if verb in verbs and verb not in VERBS_BY_KIND[kind]]:
        raise BadScopes(describe_forbidden_verb(beyond[0], kind))
    if ACTIVATE in verbs and WRITE not in verbs:
        raise BadScopes(_("“activate” requires “write” as well."))


def describe_forbidden_verb(verb: str, kind: str) -> str:
    if kind == BOT:
        return _("A bot key cannot have the “%(verb)s” permission. Use an admin key.") % {"verb": verb}
    return _(
        "“%(verb)s” is only for bot keys. An admin key with “write” already creates active memories."
    ) % {"verb": verb}


def _validate_scope_list(name: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) and entry for entry in value):
        raise BadScopes(_("“%(name)s” must be a list of strings.") % {"name": name})
    if not value:
        # An empty list would allow nothing, but users could take it for "no limit".
        raise BadScopes(_("“%(name)s” is an empty list. To set no limit, omit it.") % {"name": name})
    if len(value) > MAX_SCOPE_ENTRIES:
        raise BadScopes(
            _("“%(name)s” has more than %(most)s entries.") % {"name": name, "most": MAX_SCOPE_ENTRIES}
        )
    return sorted(set(value))


class ScopedKey(Protocol):
    """The attributes of a key that determine its permissions."""

    @property
    def kind(self) -> str: ...
    @property
    def scopes(self) -> Mapping[str, Any]: ...


# Permissions that each action grants, by kind of key. For a bot, `write` grants no permission to edit
# records: it allows only the operations that are open to bots (propose memories, tick steps, report, push
# files).
VERB_PERMISSIONS: dict[str, dict[str, tuple[Permission, ...]]] = {
    BOT: {READ: (Permission.READ,)},
    ADMIN: {
        READ: (Permission.READ,),
        WRITE: (Permission.EDIT,),
        APPROVE: (Permission.APPROVE,),
        MANAGE: (Permission.MANAGE_SOURCES, Permission.MANAGE_KEYS, Permission.MANAGE_MEMBERS),
        OVERRIDE: (Permission.OVERRIDE,),
    },
}


def get_required_verb(permission: Permission, kind: str) -> str:
    """Return the verb that a key of this kind needs for an operation with this permission."""
    granting = [verb for verb, gives in VERB_PERMISSIONS[kind].items() if permission in gives]
    # A bot has no permission to edit records: `write` opens the operations that are for bots.
    return granting[0] if granting else WRITE


def resolve_permissions(key: ScopedKey, role: str) -> frozenset[Permission]:
    """Return the permissions of a key whose creator has the role `role`.

    An admin key has no permission that the role does not have; an empty role has none.
    """
    verbs = get_key_verbs(key.scopes, key.kind)
    permissions = {
        permission
        for verb, gives in VERB_PERMISSIONS.get(key.kind, {}).items()
        if verb in verbs
        for permission in gives
    }
    # A bot key belongs to the workspace, so its permissions do not depend on the role of its creator.
    return frozenset(
        permissions
        if key.kind == BOT
        else {permission for permission in permissions if has_permission(role, permission)}
    )


# Labels that a prompt has in every workspace: `latest` once it is built, `production` once it is deployed.
BUILT_IN_LABELS = ("latest", "production")
LABEL_SOURCES: list[Callable[[Workspace], Iterable[str]]] = []


def list_scope_labels(workspace: Workspace) -> list[str]:
    return sorted({*BUILT_IN_LABELS, *(name for source in LABEL_SOURCES for name in source(workspace))})
