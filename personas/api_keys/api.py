"""REST resource of API keys: create, read, rotate, revoke. A rotated key stays valid for a given time."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern
from django.utils import timezone

from core.text.timestamps import parse_timestamp
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.problems import FieldError, ProblemError, json_pointer
from personas.api.responses import ApiResponse, datetime_json, json_response, no_content_response
from personas.api.schema import (
    Schema,
    any_object_schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import (
    ACTIVATE,
    DEFAULT_VERBS,
    VERBS,
    VERBS_BY_KIND,
    WRITE,
    find_wider_dimension,
    get_key_verbs,
)
from personas.api_keys.services import (
    DEFAULT_LIFETIME,
    MAX_OVERLAP,
    create_key,
    revoke_key,
    revoke_key_with_created,
    rotate_key,
)
from personas.models import ApiKey
from personas.roles import Permission

SLUG_LIST_SCHEMA = array_schema(slug_schema(), minItems=1, uniqueItems=True)
SCOPES_SCHEMA: Schema = object_schema(
    {
        "verbs": array_schema(enum_schema(VERBS, title="KeyVerb"), minItems=1, uniqueItems=True)
        | {"if": {"contains": {"const": ACTIVATE}}, "then": {"contains": {"const": WRITE}}},
        "agents": SLUG_LIST_SCHEMA,
        "channels": SLUG_LIST_SCHEMA,
        "labels": SLUG_LIST_SCHEMA,
    },
    required=(),
    description="What the key can do. Without verbs, a new key can fetch and render. Without agents, "
    "channels or labels, it is not limited to specific ones.",
    title="KeyScopes",
)
KEY_FIELDS: dict[str, Schema] = {
    "id": integer_schema(1),
    "name": {"type": "string"},
    "kind": enum_schema([BOT, ADMIN], title="KeyKind"),
    "prefix": {"type": "string"},
    "scopes": any_object_schema(),
    "created_by": {"type": "string"},
    "creator_key_id": nullable_schema(
        integer_schema(1, description="The key that created this key through the API.")
    ),
    "created_at": datetime_schema(),
    "expires_at": datetime_schema(),
    "revoked_at": nullable_schema(datetime_schema()),
    "last_used_at": nullable_schema(datetime_schema()),
}
KEY_SCHEMA = object_schema(KEY_FIELDS, title="ApiKey")
SECRET_SCHEMA = {
    "type": ["string", "null"],
    "description": "The key itself. It is shown only once; null if the request is repeated.",
}
KEY_WITH_SECRET_SCHEMA = object_schema({**KEY_FIELDS, "secret": SECRET_SCHEMA}, title="ApiKeyWithSecret")
KEY_WRITE_OPTIONS: dict[str, Any] = {
    "permission": Permission.MANAGE_KEYS,
    "touches": Touches.KEY,
    "tag": "keys",
    "is_retryable": True,
}
MAX_OVERLAP_HOURS = MAX_OVERLAP // timedelta(hours=1)


def index(call: ApiRequest) -> ApiResponse:
    page = paginate_rows(
        list_client_keys(call), limit=call.query["limit"], cursor=call.query.get("cursor", "")
    )
    return page_response(call, page, [key_json(key) for key in page.rows])


def api_create_key(call: ApiRequest) -> ApiResponse:
    body: dict[str, Any] = call.body
    scopes = {"verbs": list_default_verbs(call), **body.get("scopes", {})}
    check_scopes_within(call, scopes, body.get("kind", BOT))
    key, secret = create_key(
        call.workspace,
        body["name"],
        scopes,
        limit_expiry(call, parse_expiry(body)),
        by=call.actor,
        kind=body.get("kind", BOT),
        creator_key=call.caller.key,
    )
    return new_key_response(key, secret)


def list_default_verbs(call: ApiRequest) -> list[str]:
    """Return the verbs of a new key if the request names none: the default ones that the client's key has.

    If it has none of them, all are returned, so that the check of the scopes names the problem.
    """
    own = get_key_verbs(call.caller.key.scopes, ADMIN)
    return [verb for verb in DEFAULT_VERBS if verb in own] or list(DEFAULT_VERBS)


def api_read_key(call: ApiRequest, key: int) -> ApiResponse:
    return json_response(key_json(get_client_key(call, key)))


def api_rotate_key(call: ApiRequest, key: int) -> ApiResponse:
    body: dict[str, Any] = call.body
    old = get_client_key(call, key)
    ends_at = timezone.now() + timedelta(hours=body.get("overlap_hours", 24))
    successor, secret = rotate_key(
        old,
        ends_at=ends_at,
        expires_at=limit_expiry(call, parse_expiry(body)),
        by=call.actor,
        creator_key=call.caller.key,
    )
    return new_key_response(successor, secret)


def api_revoke_key(call: ApiRequest, key: int) -> ApiResponse:
    row = get_client_key(call, key)
    if call.query["with_created"]:
        revoke_key_with_created(row, by=call.actor)
    else:
        revoke_key(row, by=call.actor)
    return no_content_response()


def limit_expiry(call: ApiRequest, ends_at: datetime | None) -> datetime:
    """Return when a new key expires: at `ends_at`, but not after the key that the client uses to create it.

    Otherwise a thief could keep access by creating new keys with a stolen key.
    """
    return min(ends_at or timezone.now() + DEFAULT_LIFETIME, call.caller.key.expires_at)


def check_scopes_within(call: ApiRequest, scopes: Mapping[str, Any], kind: str) -> None:
    """Raise 422 if the scopes are wider than those of the client's own key."""
    if name := find_wider_dimension(scopes, call.caller.key.scopes, kind):
        detail = f"Your own key is limited in its {name}. A key that you create cannot have more."
        raise ProblemError(validation_problem([FieldError(detail, json_pointer(["scopes", name]))]))


def list_client_keys(call: ApiRequest) -> QuerySet[ApiKey]:
    return ApiKey.objects.in_workspace(call.workspace)


def get_client_key(call: ApiRequest, key: int) -> ApiKey:
    row = list_client_keys(call).filter(pk=key).first() if 0 < key < 2**63 else None
    # A client cannot read, rotate or revoke an API key that has wider scopes than the client's own key.
    if row is None or find_wider_dimension(row.scopes, call.caller.key.scopes, row.kind):
        raise Http404
    return row


def parse_expiry(body: dict[str, Any]) -> datetime | None:
    return parse_timestamp(body["expires_at"]) if body.get("expires_at") else None


def new_key_response(key: ApiKey, secret: str) -> ApiResponse:
    """Return the response for a new key, which contains its secret.

    The copy that is stored for retries with the same Idempotency-Key does not contain the secret.
    """
    data, url = key_json(key), f"/api/v1/keys/{key.pk}"
    return json_response({**data, "secret": secret}, 201, stored={**data, "secret": None}, Location=url)


def key_json(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.pk,
        "name": key.name,
        "kind": key.kind,
        "prefix": key.prefix,
        "scopes": key.scopes,
        "created_by": key.created_label,
        "creator_key_id": key.creator_key_id,
        "created_at": datetime_json(key.created_at),
        "expires_at": datetime_json(key.expires_at),
        "revoked_at": key.revoked_at and datetime_json(key.revoked_at),
        "last_used_at": key.last_used_at and datetime_json(key.last_used_at),
    }


def limit_verbs(kind: str) -> Schema:
    """Return the condition that a new key has only verbs of its kind."""
    verbs = {"items": {"enum": list(VERBS_BY_KIND[kind])}}
    return {"properties": {"scopes": {"properties": {"verbs": verbs}}}}


CREATE_KEY_SCHEMA = object_schema(
    {
        "name": line_schema(80, least=1),
        "kind": enum_schema([BOT, ADMIN], default=BOT, title="KeyKind"),
        "scopes": SCOPES_SCHEMA,
        "expires_at": datetime_schema(description="At most 365 days from now. Default: 180 days."),
    },
    required=["name"],
    title="ApiKeyInput",
    **{
        "if": {"properties": {"kind": {"const": ADMIN}}, "required": ["kind"]},
        "then": limit_verbs(ADMIN),
        "else": limit_verbs(BOT),
    },
)
ROTATE_KEY_SCHEMA = object_schema(
    {
        "overlap_hours": integer_schema(
            0,
            MAX_OVERLAP_HOURS,
            default=24,
            description="How long the old key stays valid, at most seven days.",
        ),
        "expires_at": datetime_schema(),
    },
    required=(),
    title="ApiKeyRotation",
)

urlpatterns: list[URLPattern] = [
    endpoint(
        "keys",
        "keys-list",
        get=Operation(
            index,
            "List API keys",
            operation_id="listKeys",
            permission=Permission.MANAGE_KEYS,
            touches=Touches.WORKSPACE,
            budget="read",
            answer=page_schema(KEY_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="keys",
        ),
        post=Operation(
            api_create_key,
            "Create an API key",
            operation_id="createKey",
            body=CREATE_KEY_SCHEMA,
            answer=KEY_WITH_SECRET_SCHEMA,
            status=201,
            **KEY_WRITE_OPTIONS,
        ),
    ),
    endpoint(
        "keys/<int:id>",
        "keys-one",
        get=Operation(
            api_read_key,
            "Get an API key",
            operation_id="getKey",
            permission=Permission.MANAGE_KEYS,
            touches=Touches.KEY,
            budget="read",
            answer=KEY_SCHEMA,
            tag="keys",
        ),
    ),
    endpoint(
        "keys/<int:id>:rotate",
        "keys-rotate",
        post=Operation(
            api_rotate_key,
            "Rotate an API key",
            operation_id="rotateKey",
            body=ROTATE_KEY_SCHEMA,
            answer=KEY_WITH_SECRET_SCHEMA,
            status=201,
            **KEY_WRITE_OPTIONS,
        ),
    ),
    endpoint(
        "keys/<int:id>:revoke",
        "keys-revoke",
        post=Operation(
            api_revoke_key,
            "Revoke an API key",
            operation_id="revokeKey",
            status=204,
            query={
                "with_created": boolean_schema(
                    default=False,
                    description="Also revoke all keys that were created with it, directly or indirectly.",
                )
            },
            **KEY_WRITE_OPTIONS,
        ),
    ),
]
