"""Bots' keys: made once and shown once, never changed, taken back at once."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from personas.actors import Actor
from personas.errors import DomainError, Invalid
from personas.key_format import key_digest, new_secret, shown_prefix
from personas.key_scopes import BadScopes, settled_scopes
from personas.models import Agent, ApiKey, Channel, Workspace
from personas.services.history import note_event
from personas.services.records import readable_errors

USUAL, LONGEST = timedelta(days=180), timedelta(days=365)
# How closely the last use of a key is known.
USE_GRAIN = timedelta(minutes=1)
CHECKED = {"name", "prefix", "digest"}
UNCHECKED = [field.name for field in ApiKey._meta.concrete_fields if field.name not in CHECKED]


class KeyEnded(DomainError):
    """A key that was revoked or has expired."""

    code = "key_ended"


@transaction.atomic
def create_key(
    workspace: Workspace,
    name: str,
    scopes: Mapping[str, Any],
    expires_at: datetime | None = None,
    *,
    by: Actor,
) -> tuple[ApiKey, str]:
    """A new key, and the secret that nobody will see again."""
    key, secret = _made(workspace, name, _scopes_in(workspace, scopes), expires_at, by=by)
    _note(key, "created", by=by, after=_facts(key))
    return key, secret


@transaction.atomic
def revoke_key(key: ApiKey, *, by: Actor) -> ApiKey:
    """End a key now: the very next request with it is refused."""
    key = _held(key)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        _note(key, "revoked", by=by)
    return key


@transaction.atomic
def rotate_key(
    key: ApiKey, *, ends_at: datetime, by: Actor, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """A new key with the same scopes; the old one goes on until `ends_at`, so that bots can change over."""
    key, now = _held(key), timezone.now()
    if key.revoked_at is not None or key.expires_at <= now:
        raise KeyEnded(f"“{key}” has ended already. Make a new key instead.")
    before = {"expires_at": key.expires_at.isoformat()}
    key.expires_at = min(max(ends_at, now), key.expires_at)
    key.save(update_fields=["expires_at"])
    workspace = Workspace.objects.get(pk=key.workspace_id)
    new, secret = _made(workspace, _next_name(key), key.scopes, expires_at, by=by)
    _note(key, "rotated", by=by, before=before, after=_facts(key) | {"to": new.name})
    _note(new, "created", by=by, after=_facts(new))
    return new, secret


def note_uses(workspace: Workspace | int, uses: Mapping[int, datetime]) -> None:
    """When keys were last used, by id; written at most once a minute for each."""
    rows = ApiKey.objects.in_workspace(workspace)
    for key_id, at in uses.items():
        is_due = Q(last_used_at=None) | Q(last_used_at__lt=at - USE_GRAIN)
        rows.filter(is_due, pk=key_id).update(last_used_at=at)


def _made(
    workspace: Workspace, name: str, scopes: dict[str, list[str]], expires_at: datetime | None, *, by: Actor
) -> tuple[ApiKey, str]:
    secret = new_secret()
    key = ApiKey(
        workspace=workspace,
        name=name,
        prefix=shown_prefix(secret),
        digest=key_digest(secret),
        scopes=scopes,
        created_by=by.user,
        created_label=by.label,
        expires_at=_end(expires_at),
    )
    with readable_errors():
        key.full_clean(exclude=UNCHECKED)
        key.validate_constraints()
        key.save(force_insert=True)
    return key, secret


def _end(expires_at: datetime | None) -> datetime:
    now = timezone.now()
    if expires_at is None:
        return now + USUAL
    if expires_at <= now:
        raise Invalid.on("expires_at", "Choose a day that is still to come.")
    if expires_at > now + LONGEST:
        raise Invalid.on("expires_at", f"A key lasts {LONGEST.days} days at most.")
    return expires_at


def _scopes_in(workspace: Workspace, scopes: Mapping[str, Any]) -> dict[str, list[str]]:
    """The scopes, once every agent and channel in them is known to be there."""
    try:
        made = settled_scopes(scopes)
    except BadScopes as error:
        raise Invalid.on("scopes", str(error)) from error
    agents, channels = Agent.objects.in_workspace(workspace), Channel.objects.in_workspace(workspace)
    for kind, rows in (("agent", agents), ("channel", channels)):
        named = made.get(f"{kind}s", [])
        known = set(rows.filter(slug__in=named).values_list("slug", flat=True)) if named else set()
        if missing := [slug for slug in named if slug not in known]:
            raise Invalid.on("scopes", f"There is no {kind} “{missing[0]}”.")
    return made


def _next_name(key: ApiKey) -> str:
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


def _held(key: ApiKey) -> ApiKey:
    # Not the whole lock: rows that point here go on being written while it is held.
    rows = ApiKey.objects.in_workspace(key.workspace_id).select_for_update(no_key=True)
    return rows.get(pk=key.pk)


def _facts(key: ApiKey) -> dict[str, Any]:
    return {"prefix": key.prefix, "scopes": key.scopes, "expires_at": key.expires_at.isoformat()}


def _note(
    key: ApiKey,
    verb: str,
    *,
    by: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    note_event(key.workspace_id, verb, "key", key.pk, key.name, by=by, before=before, after=after)
