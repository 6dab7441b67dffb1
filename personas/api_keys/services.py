"""Keys of bots and of people's scripts: made once and shown once, never changed, taken back at once."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT, KEY_PREFIXES, generate_key_secret, get_key_prefix, key_digest
from personas.api_keys.scopes import BadScopes, normalise_scopes
from personas.audit.services import write_audit_event
from personas.errors import DomainError, InvalidInput
from personas.models import Agent, ApiKey, Channel, Membership, User, Workspace
from personas.records.services import convert_save_errors

DEFAULT_LIFETIME, MAX_LIFETIME = timedelta(days=180), timedelta(days=365)
# How closely the last use of a key is known.
LAST_USED_RESOLUTION = timedelta(minutes=1)
VALIDATED_FIELDS = {"name", "prefix", "digest"}
UNVALIDATED_FIELDS = [
    field.name for field in ApiKey._meta.concrete_fields if field.name not in VALIDATED_FIELDS
]


class KeyEnded(DomainError):
    """A key that was revoked or has expired."""

    code = "key_ended"


class NotKeyOwner(DomainError):
    """An admin key that acts for somebody else."""

    code = "not_yours"


@transaction.atomic
def create_key(
    workspace: Workspace,
    name: str,
    scopes: Mapping[str, Any],
    expires_at: datetime | None = None,
    *,
    by: Actor,
    kind: str = BOT,
) -> tuple[ApiKey, str]:
    """A new key, and the secret that nobody will see again."""
    _check_creator(workspace, kind, by)
    key, secret = _insert_key(
        workspace, name, _validate_scopes(workspace, scopes, kind), expires_at, kind=kind, by=by
    )
    _audit_key(key, "created", by=by, after=_key_audit_data(key))
    return key, secret


@transaction.atomic
def revoke_key(key: ApiKey, *, by: Actor) -> ApiKey:
    """End a key now: the very next request with it is refused."""
    key = _lock_key(key)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        _audit_key(key, "revoked", by=by)
    return key


@transaction.atomic
def revoke_member_keys(workspace: Workspace | int, person: User, *, by: Actor) -> list[ApiKey]:
    """End the keys that act for this person; the bots' keys they made are the workspace's, and go on."""
    rows = ApiKey.objects.in_workspace(workspace).filter(kind=ADMIN, created_by=person, revoked_at=None)
    return [revoke_key(key, by=by) for key in rows.order_by("pk")]


@transaction.atomic
def rotate_key(
    key: ApiKey, *, ends_at: datetime, by: Actor, expires_at: datetime | None = None, name: str = ""
) -> tuple[ApiKey, str]:
    """A new key with the same scopes; the old one goes on until `ends_at`, so that bots can change over."""
    workspace, now = Workspace.objects.get(pk=key.workspace_id), timezone.now()
    _check_creator(workspace, key.kind, by)
    key = _lock_key(key)
    _check_rotation(key, now, by)
    before = {"expires_at": key.expires_at.isoformat()}
    key.expires_at = min(max(ends_at, now), key.expires_at)
    key.save(update_fields=["expires_at"])
    new, secret = _insert_key(
        workspace, name or get_next_key_name(key), key.scopes, expires_at, kind=key.kind, by=by
    )
    _audit_key(key, "rotated", by=by, before=before, after=_key_audit_data(key) | {"to": new.name})
    _audit_key(new, "created", by=by, after=_key_audit_data(new))
    return new, secret


def save_last_used(workspace: Workspace | int, uses: Mapping[int, datetime]) -> None:
    """When keys were last used, by id; written at most once a minute for each."""
    rows = ApiKey.objects.in_workspace(workspace)
    for key_id, at in uses.items():
        is_due = Q(last_used_at=None) | Q(last_used_at__lt=at - LAST_USED_RESOLUTION)
        rows.filter(is_due, pk=key_id).update(last_used_at=at)


def get_next_key_name(key: ApiKey) -> str:
    """Names are unique and stay with their keys: the next of “Desk” is “Desk 2”."""
    stem, _, tail = key.name.rpartition(" ")
    stem, number = (stem, int(tail)) if stem and tail.isdecimal() and len(tail) < 5 else (key.name, 1)
    taken = set(ApiKey.objects.in_workspace(key.workspace_id).values_list("name", flat=True))
    longest = ApiKey._meta.get_field("name").max_length or 0
    while True:
        number += 1
        name = f"{stem[: longest - len(str(number)) - 1]} {number}"
        if name not in taken:
            return name


def _check_creator(workspace: Workspace, kind: str, by: Actor) -> None:
    """An admin key needs somebody to act for: a person, and a member."""
    if kind not in KEY_PREFIXES:
        raise InvalidInput.on(
            "kind",
            _("“%(kind)s” is not a kind of key. There are: %(kinds)s.")
            % {"kind": kind, "kinds": ", ".join(KEY_PREFIXES)},
        )
    if kind == BOT:
        return
    if by.user is None:
        raise InvalidInput.on("kind", _("An admin key acts for a person, so only a person can make one."))
    # Held as long as somebody is being removed: their last key is made before, and goes too, or not at all.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    if not Membership.objects.in_workspace(workspace).filter(user=by.user).exists():
        raise InvalidInput.on(
            "kind", _("An admin key acts for a member, and you are none of this workspace.")
        )


def _check_rotation(key: ApiKey, now: datetime, by: Actor) -> None:
    if key.revoked_at is not None or key.expires_at <= now:
        raise KeyEnded(_("“%(key)s” has ended already. Make a new key instead.") % {"key": key})
    # Whoever rotates a key gets its secret: nobody may come to act in another's name that way.
    if key.kind == ADMIN and (by.user is None or by.user.pk != key.created_by_id):
        raise NotKeyOwner(
            _("“%(key)s” acts for %(person)s: only they can rotate it. You can revoke it.")
            % {"key": key, "person": key.created_label}
        )


def _insert_key(
    workspace: Workspace,
    name: str,
    scopes: dict[str, list[str]],
    expires_at: datetime | None,
    *,
    kind: str,
    by: Actor,
) -> tuple[ApiKey, str]:
    secret = generate_key_secret(kind)
    key = ApiKey(
        workspace=workspace,
        name=name,
        kind=kind,
        prefix=get_key_prefix(secret),
        digest=key_digest(secret),
        scopes=scopes,
        created_by=by.user,
        created_label=by.label,
        expires_at=_resolve_expiry(expires_at),
    )
    with convert_save_errors():
        key.full_clean(exclude=UNVALIDATED_FIELDS)
        key.validate_constraints()
        key.save(force_insert=True)
    return key, secret


def _resolve_expiry(expires_at: datetime | None) -> datetime:
    now = timezone.now()
    if expires_at is None:
        return now + DEFAULT_LIFETIME
    if expires_at <= now:
        raise InvalidInput.on("expires_at", _("Choose a day that is still to come."))
    if expires_at > now + MAX_LIFETIME:
        raise InvalidInput.on(
            "expires_at", _("A key lasts %(days)s days at most.") % {"days": MAX_LIFETIME.days}
        )
    return expires_at


def _validate_scopes(workspace: Workspace, scopes: Mapping[str, Any], kind: str) -> dict[str, list[str]]:
    """The scopes, once every agent and channel in them is known to be there."""
    try:
        made = normalise_scopes(scopes, kind)
    except BadScopes as error:
        raise InvalidInput.on("scopes", str(error)) from error
    agents, channels = Agent.objects.in_workspace(workspace), Channel.objects.in_workspace(workspace)
    for word, rows in (("agent", agents), ("channel", channels)):
        named = made.get(f"{word}s", [])
        known = set(rows.filter(slug__in=named).values_list("slug", flat=True)) if named else set()
        if missing := [slug for slug in named if slug not in known]:
            raise InvalidInput.on(
                "scopes", _("There is no %(word)s “%(name)s”.") % {"word": word, "name": missing[0]}
            )
    return made


def _lock_key(key: ApiKey) -> ApiKey:
    # Not the whole lock: rows that point here go on being written while it is held.
    rows = ApiKey.objects.in_workspace(key.workspace_id).select_for_update(no_key=True)
    return rows.get(pk=key.pk)


def _key_audit_data(key: ApiKey) -> dict[str, Any]:
    return {
        "kind": key.kind,
        "prefix": key.prefix,
        "scopes": key.scopes,
        "expires_at": key.expires_at.isoformat(),
    }


def _audit_key(
    key: ApiKey,
    verb: str,
    *,
    by: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    write_audit_event(key.workspace_id, verb, "key", key.pk, key.name, by=by, before=before, after=after)
