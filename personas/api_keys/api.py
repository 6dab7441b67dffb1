"""Keys through the API: made and shown once, rotated with overlap, taken back at once."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern
from django.utils import timezone

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.problems import FieldError, ProblemError, pointer_to
from personas.api.record_resource import limited
from personas.api.responses import Answer, answered, empty, moment_told
from personas.api.schema import (
    Shape,
    anything,
    choice,
    line,
    listed,
    moment,
    nullable,
    page_of,
    shape,
    slug,
    whole,
)
from personas.api.validation import read_moment
from personas.api.views import endpoint
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import VERBS, widest
from personas.api_keys.services import USUAL, create_key, revoke_key, rotate_key
from personas.models import ApiKey
from personas.roles import Permission

NAMES = listed(slug(), minItems=1, uniqueItems=True)
SCOPES: Shape = shape(
    {
        "verbs": listed(choice(VERBS), minItems=1, uniqueItems=True),
        "agents": NAMES,
        "channels": NAMES,
        "labels": NAMES,
    },
    required=(),
    description="What the key may be used for; an absent list means all.",
)
TOLD: dict[str, Shape] = {
    "id": whole(1),
    "name": {"type": "string"},
    "kind": choice([BOT, ADMIN]),
    "prefix": {"type": "string"},
    "scopes": anything(),
    "created_by": {"type": "string"},
    "created_at": moment(),
    "expires_at": moment(),
    "revoked_at": nullable(moment()),
    "last_used_at": nullable(moment()),
}
KEY = shape(TOLD)
SECRET = {"type": ["string", "null"], "description": "The key itself, shown this once; null when sent again."}
NEW_KEY = shape({**TOLD, "secret": SECRET})
MADE: dict[str, Any] = {"permission": Permission.MANAGE_KEYS, "tag": "keys", "is_retryable": True}
LONGEST_OVERLAP = 24 * 30


def index(call: Call) -> Answer:
    if call.caller.is_limited:
        raise limited()
    page = page_of_rows(rows(call), limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_answered(call, page, [told(key) for key in page.rows])


def add(call: Call) -> Answer:
    said: dict[str, Any] = call.body
    refuse_wider(call, said.get("scopes", {}), said.get("kind", BOT))
    key, secret = create_key(
        call.workspace,
        said["name"],
        said.get("scopes", {}),
        no_longer(call, until(said)),
        by=call.actor,
        kind=said.get("kind", BOT),
    )
    return given(key, secret)


def read(call: Call, key: int) -> Answer:
    return answered(told(found(call, key)))


def rotate(call: Call, key: int) -> Answer:
    said: dict[str, Any] = call.body
    old = found(call, key)
    ends_at = timezone.now() + timedelta(hours=said.get("overlap_hours", 24))
    made, secret = rotate_key(old, ends_at=ends_at, expires_at=no_longer(call, until(said)), by=call.actor)
    return given(made, secret)


def revoke(call: Call, key: int) -> Answer:
    revoke_key(found(call, key), by=call.actor)
    return empty()


def no_longer(call: Call, ends_at: datetime | None) -> datetime:
    """A key that was stolen should not be able to outlive itself."""
    return min(ends_at or timezone.now() + USUAL, call.caller.key.expires_at)


def refuse_wider(call: Call, scopes: Mapping[str, Any], kind: str) -> None:
    """Nobody hands out more than he has."""
    if name := widest(scopes, call.caller.key.scopes, kind):
        said = f"Your own key is limited in its {name}: a key you make cannot have more."
        raise ProblemError(invalid([FieldError(said, pointer_to(["scopes", name]))]))


def rows(call: Call) -> QuerySet[ApiKey]:
    return ApiKey.objects.in_workspace(call.workspace)


def found(call: Call, key: int) -> ApiKey:
    row = rows(call).filter(pk=key).first() if 0 < key < 2**63 else None
    # A key that may more than the caller's is not the caller's to see, replace or end.
    if row is None or widest(row.scopes, call.caller.key.scopes, row.kind):
        raise Http404
    return row


def until(said: dict[str, Any]) -> datetime | None:
    return read_moment(said["expires_at"]) if said.get("expires_at") else None


def given(key: ApiKey, secret: str) -> Answer:
    """The secret goes out once; what is kept for a retry does not hold it."""
    facts, at = told(key), f"/api/v1/keys/{key.pk}"
    return answered({**facts, "secret": secret}, 201, kept={**facts, "secret": None}, Location=at)


def told(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.pk,
        "name": key.name,
        "kind": key.kind,
        "prefix": key.prefix,
        "scopes": key.scopes,
        "created_by": key.created_label,
        "created_at": moment_told(key.created_at),
        "expires_at": moment_told(key.expires_at),
        "revoked_at": key.revoked_at and moment_told(key.revoked_at),
        "last_used_at": key.last_used_at and moment_told(key.last_used_at),
    }


NEW = shape(
    {
        "name": line(80, least=1),
        "kind": choice([BOT, ADMIN], default=BOT),
        "scopes": SCOPES,
        "expires_at": moment(description="At most 365 days from now; 180 days when absent."),
    },
    required=["name"],
)
ROTATION = shape(
    {
        "overlap_hours": whole(0, LONGEST_OVERLAP, default=24, description="How long the old key goes on."),
        "expires_at": moment(),
    },
    required=(),
)

urlpatterns: list[URLPattern] = [
    endpoint(
        "keys",
        "keys-list",
        get=Operation(
            index,
            "List keys",
            permission=Permission.MANAGE_KEYS,
            budget="read",
            answer=page_of(KEY),
            query=PAGING,
            tag="keys",
        ),
        post=Operation(add, "Make a key", body=NEW, answer=NEW_KEY, status=201, **MADE),
    ),
    endpoint(
        "keys/<int:key>",
        "keys-one",
        get=Operation(
            read, "Read a key", permission=Permission.MANAGE_KEYS, budget="read", answer=KEY, tag="keys"
        ),
    ),
    endpoint(
        "keys/<int:key>:rotate",
        "keys-rotate",
        post=Operation(
            rotate, "Replace a key, with overlap", body=ROTATION, answer=NEW_KEY, status=201, **MADE
        ),
    ),
    endpoint(
        "keys/<int:key>:revoke",
        "keys-revoke",
        post=Operation(revoke, "End a key now", status=204, **MADE),
    ),
]
