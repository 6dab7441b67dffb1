"""Create, rotate and revoke API keys."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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
from personas.events.services import record_event
from personas.models import Agent, ApiKey, Channel, Event, Membership, User, Workspace
from personas.records.services import convert_save_errors
from personas.tenancy.lost_nodes import lock_workspace

DEFAULT_LIFETIME, MAX_LIFETIME = timedelta(days=180), timedelta(days=365)
# How long before a key expires the event `key.expiring` is recorded.
EXPIRY_NOTICE = timedelta(days=7)
# How long a rotated key may stay valid alongside its successor.
MAX_OVERLAP = timedelta(days=7)
# Minimum interval between two updates of a key's `last_used_at`.
LAST_USED_RESOLUTION = timedelta(minutes=1)
VALIDATED_FIELDS = {"name", "prefix", "digest"}
UNVALIDATED_FIELDS = [
    field.name for field in ApiKey._meta.concrete_fields if field.name not in VALIDATED_FIELDS
]


class KeyRevoked(DomainError):
    """The key cannot be rotated, because it was revoked."""

    code = "key_revoked"


class KeyExpired(DomainError):
    """The key cannot be rotated, because it has expired."""

    code = "key_expired"


class NotKeyOwner(DomainError):
    """The admin key cannot be rotated, because it acts for another user."""

    code = "not_key_owner"


@transaction.atomic
def create_key(
    workspace: Workspace,
    name: str,
    scopes: Mapping[str, Any],
    expires_at: datetime | None = None,
    *,
    by: Actor,
    kind: str = BOT,
    creator_key: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """Create a key. Return it with its secret, which is not stored and cannot be shown again.

    `creator_key` is the key of the API request that creates it.
    """
    _check_creator(workspace, kind, by)
    key, secret = _insert_key(
        workspace,
        name,
        _validate_scopes(workspace, scopes, kind),
        expires_at,
        kind=kind,
        by=by,
        creator_key=creator_key,
    )
    _audit_key(key, "created", by=by, after=_key_audit_data(key))
    _record_key_event(key, "key.created")
    return key, secret


@transaction.atomic
def revoke_key(key: ApiKey, *, by: Actor) -> ApiKey:
    """Revoke a key, so that the next request with it is rejected."""
    key = _lock_key(key)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        _audit_key(key, "revoked", by=by)
        _record_key_event(key, "key.revoked")
    return key


@transaction.atomic
def revoke_key_with_created(key: ApiKey, *, by: Actor) -> list[ApiKey]:
    """Revoke a key, the keys that were created with it, and in turn those that were created with them.

    Return the keys that were valid before.
    """
    revoked, seen = [], {key.pk}
    pending = [key]
    while pending:
        current = pending.pop()
        if current.revoked_at is None:
            revoked.append(revoke_key(current, by=by))
        created = ApiKey.objects.in_workspace(key.workspace_id).filter(creator_key=current)
        pending += [one for one in created.order_by("pk") if one.pk not in seen]
        seen |= {one.pk for one in pending}
    return revoked


@transaction.atomic
def revoke_member_keys(workspace: Workspace | int, user: User, *, by: Actor) -> list[ApiKey]:
    """Revoke the admin keys of a user in a workspace.

    Bot keys that the user created belong to the workspace and stay valid.
    """
    rows = ApiKey.objects.in_workspace(workspace).filter(kind=ADMIN, created_by=user, revoked_at=None)
    return [revoke_key(key, by=by) for key in rows.order_by("pk")]


@transaction.atomic
def rotate_key(
    key: ApiKey,
    *,
    ends_at: datetime,
    by: Actor,
    expires_at: datetime | None = None,
    name: str = "",
    creator_key: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """Create a new key with the same scopes, and return it with its secret.

    The old key stays valid until `ends_at`, so that clients can change over to the new key. `creator_key` is
    the key of the API request that rotates it; without one, the new key has the creator key of the old one.
    """
    workspace, now = Workspace.objects.get(pk=key.workspace_id), timezone.now()
    _check_creator(workspace, key.kind, by)
    key = _lock_key(key)
    _check_rotation(key, now, by)
    if min(ends_at, key.expires_at) > now + MAX_OVERLAP:
        raise InvalidInput.on(
            "overlap_hours",
            _("The old key can stay valid for at most %(days)s days.") % {"days": MAX_OVERLAP.days},
        )
    before = {"expires_at": key.expires_at.isoformat()}
    key.expires_at = min(max(ends_at, now), key.expires_at)
    key.save(update_fields=["expires_at"])
    new, secret = _insert_key(
        workspace,
        name or get_next_key_name(key),
        key.scopes,
        expires_at,
        kind=key.kind,
        by=by,
        origin_id=key.origin_key_id,
        creator_key=creator_key or key.creator_key,
    )
    _audit_key(key, "rotated", by=by, before=before, after=_key_audit_data(key) | {"to": new.name})
    _audit_key(new, "created", by=by, after=_key_audit_data(new))
    _record_key_event(key, "key.rotated", new_key_id=new.pk)
    return new, secret


def save_last_used(workspace: Workspace | int, uses: Mapping[int, datetime]) -> None:
    """Save the times of last use, given by key id.

    A key is updated only if its stored time is older by more than LAST_USED_RESOLUTION.
    """
    rows = ApiKey.objects.in_workspace(workspace)
    for key_id, at in uses.items():
        is_due = Q(last_used_at=None) | Q(last_used_at__lt=at - LAST_USED_RESOLUTION)
        rows.filter(is_due, pk=key_id).update(last_used_at=at)


def get_next_key_name(key: ApiKey) -> str:
    """Return an unused name for the key that replaces this key in a rotation: “Desk 2” after “Desk”."""
    stem, _, tail = key.name.rpartition(" ")
    stem, number = (stem, int(tail)) if stem and tail.isdecimal() and len(tail) < 5 else (key.name, 1)
    return _number_key_name(key.workspace_id, stem, number + 1)


def find_free_key_name(workspace: Workspace, name: str) -> str:
    """Return this name for a new key, with a number if another key has it: “Desk 2”."""
    stem = name[: ApiKey._meta.get_field("name").max_length]
    is_taken = ApiKey.objects.in_workspace(workspace).filter(name=stem).exists()
    return _number_key_name(workspace.pk, stem, 2) if is_taken else stem


def _number_key_name(workspace_id: int, stem: str, number: int) -> str:
    used_names = set(ApiKey.objects.in_workspace(workspace_id).values_list("name", flat=True))
    max_length = ApiKey._meta.get_field("name").max_length or 0
    while (name := f"{stem[: max_length - len(str(number)) - 1]} {number}") in used_names:
        number += 1
    return name


def _check_creator(workspace: Workspace, kind: str, by: Actor) -> None:
    """Raise InvalidInput if an admin key would be created by anyone but a member of the workspace.

    An admin key acts for its creator. Raise DomainError if the workspace was deleted.
    """
    if kind not in KEY_PREFIXES:
        raise InvalidInput.on(
            "kind",
            _("“%(kind)s” is not a valid kind of key. Choose from: %(kinds)s.")
            % {"kind": kind, "kinds": ", ".join(KEY_PREFIXES)},
        )
    # Lock the workspace row, as remove_member and delete_workspace do. Otherwise a key that is created while
    # its creator is being removed, or the workspace deleted, would not be revoked.
    if lock_workspace(workspace.pk).deleted_at is not None:
        raise DomainError(_("This workspace was deleted. Restore it to create keys."))
    if kind == BOT:
        return
    if by.user is None:
        raise InvalidInput.on(
            "kind", _("An admin key acts for a person, so only a signed-in member can create one.")
        )
    if not Membership.objects.in_workspace(workspace).filter(user=by.user).exists():
        raise InvalidInput.on(
            "kind",
            _("An admin key acts on behalf of a member, so only members of this workspace can create one."),
        )


def _check_rotation(key: ApiKey, now: datetime, by: Actor) -> None:
    if key.revoked_at is not None:
        raise KeyRevoked(_("“%(key)s” was revoked. Create a new key instead.") % {"key": key})
    if key.expires_at <= now:
        raise KeyExpired(_("“%(key)s” has expired. Create a new key instead.") % {"key": key})
    # Rotation reveals the secret of the new key, so only the user for whom an admin key acts may rotate it.
    if key.kind == ADMIN and (by.user is None or by.user.pk != key.created_by_id):
        raise NotKeyOwner(
            _(
                "“%(key)s” acts on behalf of %(person)s, so only they can rotate it. "
                "You can revoke it instead."
            )
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
    origin_id: int | None = None,
    creator_key: ApiKey | None = None,
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
        origin_id=origin_id,
        creator_key=creator_key,
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
        raise InvalidInput.on("expires_at", _("Choose a date in the future."))
    if expires_at > now + MAX_LIFETIME:
        raise InvalidInput.on(
            "expires_at", _("A key can be valid for at most %(days)s days.") % {"days": MAX_LIFETIME.days}
        )
    return expires_at


def _validate_scopes(workspace: Workspace, scopes: Mapping[str, Any], kind: str) -> dict[str, list[str]]:
    """Validate and normalize scopes. Their agents and channels must exist in the workspace."""
    try:
        normalised = normalise_scopes(scopes, kind)
    except BadScopes as error:
        raise InvalidInput.on("scopes", str(error)) from error
    agents, channels = Agent.objects.in_workspace(workspace), Channel.objects.in_workspace(workspace)
    for kind_name, rows in (("agent", agents), ("channel", channels)):
        slugs = normalised.get(f"{kind_name}s", [])
        existing = set(rows.filter(slug__in=slugs).values_list("slug", flat=True)) if slugs else set()
        if missing := [slug for slug in slugs if slug not in existing]:
            raise InvalidInput.on(
                "scopes",
                _("The %(word)s “%(name)s” does not exist.") % {"word": kind_name, "name": missing[0]},
            )
    return normalised


def _lock_key(key: ApiKey) -> ApiKey:
    # FOR NO KEY UPDATE, so that other transactions can still insert rows with a foreign key to this key.
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


def record_expiring_keys(workspace: Workspace | int) -> int:
    """Record an event for each key that expires within EXPIRY_NOTICE, once per key. Return their number."""
    now = timezone.now()
    rows = ApiKey.objects.in_workspace(workspace).filter(
        revoked_at=None, expires_at__gt=now, expires_at__lt=now + EXPIRY_NOTICE
    )
    events = Event.objects.in_workspace(workspace).filter(type="key.expiring")
    known = set(events.values_list("data__key_id", flat=True))
    # Keys with a lifetime of at most EXPIRY_NOTICE need no notice.
    keys = [key for key in rows if key.pk not in known and key.expires_at - key.created_at > EXPIRY_NOTICE]
    for key in keys:
        _record_key_event(key, "key.expiring")
    return len(keys)


def _record_key_event(key: ApiKey, name: str, *, new_key_id: int | None = None) -> None:
    data = {
        "key_id": key.pk,
        "kind": key.kind,
        "expires_at": key.expires_at.astimezone(UTC).isoformat(),
        "new_key_id": new_key_id,
    }
    record_event(key.workspace_id, name, data)
