"""REST resource of webhook endpoints: create, edit, rotate the secret, test, deliveries."""

from datetime import timedelta
from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import check_etag
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response, no_content_response
from personas.api.schema import (
    WEBHOOK_URL_FORMAT,
    Schema,
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
from personas.events.types import EVENT_TYPES
from personas.models import DeliveryStatus, EndpointStatus, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from personas.roles import Permission
from personas.webhooks.selectors import get_endpoint_public_key, list_deliveries, list_endpoints
from personas.webhooks.services import (
    MAX_OVERLAP_HOURS,
    create_endpoint,
    delete_endpoint,
    edit_endpoint,
    redeliver,
    rotate_secret,
    send_test_event,
    set_endpoint_status,
)

SLUGS_SCHEMA = array_schema(slug_schema(), uniqueItems=True)
ENDPOINT_INPUT: dict[str, Schema] = {
    "name": line_schema(80, least=1),
    "url": line_schema(500, least=1, format=WEBHOOK_URL_FORMAT),
    "types": array_schema(enum_schema(EVENT_TYPES, title="EventType"), uniqueItems=True),
    "agents": SLUGS_SCHEMA,
    "channels": SLUGS_SCHEMA,
    "labels": SLUGS_SCHEMA,
}
ENDPOINT_FIELDS: dict[str, Schema] = {
    "id": integer_schema(1),
    **ENDPOINT_INPUT,
    "is_enabled": boolean_schema(),
    "status": enum_schema(EndpointStatus.values, title="WebhookStatus"),
    "public_key": {"type": "string", "description": "Ed25519 key of the signature v1a: `whpk_` and base64."},
    "previous_secret_ends_at": nullable_schema(datetime_schema()),
    "created_by": {"type": "string"},
    "created_at": datetime_schema(),
}
ENDPOINT_SCHEMA = object_schema(ENDPOINT_FIELDS, title="WebhookEndpoint")
SECRET_SCHEMA = {
    "type": ["string", "null"],
    "description": ("Shown only once; null if the request is repeated."),
}
ENDPOINT_WITH_SECRET_SCHEMA = object_schema(
    {**ENDPOINT_FIELDS, "secret": SECRET_SCHEMA}, title="WebhookEndpointWithSecret"
)
ATTEMPT_SCHEMA = object_schema(
    {
        "at": datetime_schema(),
        "milliseconds": integer_schema(),
        "status": nullable_schema(integer_schema(100, 999)),
        "error": {"type": "string"},
        "response": {"type": "string", "description": "The first 2,000 bytes."},
    },
    title="WebhookAttempt",
)
DELIVERY_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "event_id": {"type": "string"},
        "type": {"type": "string"},
        "status": enum_schema(DeliveryStatus.values, title="WebhookDeliveryStatus"),
        "next_attempt_at": nullable_schema(datetime_schema()),
        "attempts": array_schema(ATTEMPT_SCHEMA),
    },
    title="WebhookDelivery",
)
OPTIONS: dict[str, Any] = {
    "permission": Permission.MANAGE_KEYS,
    "touches": Touches.WORKSPACE,
    "tag": "webhooks",
}


def index(call: ApiRequest) -> ApiResponse:
    rows = list_endpoints(call.workspace)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [endpoint_json(row) for row in page.rows])


def api_create_webhook(call: ApiRequest) -> ApiResponse:
    row, secret = create_endpoint(call.workspace, call.body, by=call.actor)
    return secret_response(row, secret, 201)


def api_read_webhook(call: ApiRequest, key: int) -> ApiResponse:
    return endpoint_response(get_client_endpoint(call, key))


def api_edit_webhook(call: ApiRequest, key: int) -> ApiResponse:
    row = get_client_endpoint(call, key)
    check_etag(get_endpoint_etag(row), call.if_match)
    values = dict(call.body)
    is_enabled = values.pop("is_enabled", None)
    row = edit_endpoint(row, values, by=call.actor)
    if is_enabled is not None and is_enabled != row.is_enabled:
        status = EndpointStatus.ENABLED if is_enabled else EndpointStatus.DISABLED
        row = set_endpoint_status(row, status, by=call.actor)
    return endpoint_response(row)


def api_delete_webhook(call: ApiRequest, key: int) -> ApiResponse:
    row = get_client_endpoint(call, key)
    check_etag(get_endpoint_etag(row), call.if_match)
    delete_endpoint(row, by=call.actor)
    return no_content_response()


def api_rotate_webhook_secret(call: ApiRequest, key: int) -> ApiResponse:
    overlap = timedelta(hours=call.body.get("overlap_hours", 24))
    row, secret = rotate_secret(get_client_endpoint(call, key), overlap=overlap, by=call.actor)
    return secret_response(row, secret, 200)


def api_test_webhook(call: ApiRequest, key: int) -> ApiResponse:
    send_test_event(get_client_endpoint(call, key), by=call.actor)
    return no_content_response()


def api_list_webhook_deliveries(call: ApiRequest, key: int) -> ApiResponse:
    rows = list_deliveries(get_client_endpoint(call, key))
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [delivery_json(row) for row in page.rows])


def api_redeliver(call: ApiRequest, key: int, delivery: int) -> ApiResponse:
    rows = list_deliveries(get_client_endpoint(call, key)).select_related("endpoint", "event")
    row = rows.filter(pk=delivery).first() if 0 < delivery < 2**63 else None
    if row is None:
        raise Http404
    redeliver(row, by=call.actor)
    return no_content_response()


def get_client_endpoint(call: ApiRequest, key: int) -> WebhookEndpoint:
    row = list_endpoints(call.workspace).filter(pk=key).first() if 0 < key < 2**63 else None
    if row is None:
        raise Http404
    return row


def get_endpoint_etag(row: WebhookEndpoint) -> str:
    return f'"{row.revision}"'


def endpoint_response(row: WebhookEndpoint) -> ApiResponse:
    return json_response(endpoint_json(row), ETag=get_endpoint_etag(row))


def secret_response(row: WebhookEndpoint, secret: str, status: int) -> ApiResponse:
    """Return an endpoint with its secret. The copy for retries does not contain the secret."""
    data = endpoint_json(row)
    location = f"/api/v1/webhooks/{row.pk}" if status == 201 else ""
    return json_response(
        {**data, "secret": secret}, status, stored={**data, "secret": None}, Location=location
    )


def endpoint_json(row: WebhookEndpoint) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "url": row.url,
        "types": row.types,
        "agents": row.agents,
        "channels": row.channels,
        "labels": row.labels,
        "is_enabled": row.is_enabled,
        "status": row.status,
        "public_key": get_endpoint_public_key(row),
        "previous_secret_ends_at": row.previous_ends_at and datetime_json(row.previous_ends_at),
        "created_by": row.created_label,
        "created_at": datetime_json(row.created_at),
    }


def delivery_json(row: WebhookDelivery) -> dict[str, Any]:
    is_pending = row.status == DeliveryStatus.PENDING
    attempts = sorted(row.attempts.all(), key=lambda attempt: attempt.pk)
    return {
        "id": row.pk,
        "event_id": row.event.public_id,
        "type": row.event.type,
        "status": row.status,
        "next_attempt_at": datetime_json(row.due_at) if is_pending else None,
        "attempts": [attempt_json(attempt) for attempt in attempts],
    }


def attempt_json(row: WebhookAttempt) -> dict[str, Any]:
    return {
        "at": datetime_json(row.at),
        "milliseconds": row.milliseconds,
        "status": row.status,
        "error": row.error,
        "response": row.response,
    }


ROTATION_SCHEMA = object_schema(
    {"overlap_hours": integer_schema(0, MAX_OVERLAP_HOURS, default=24)}, required=(), title="SecretRotation"
)

urlpatterns: list[URLPattern] = [
    endpoint(
        "webhooks",
        "webhooks-list",
        get=Operation(
            index,
            "List webhook endpoints",
            operation_id="listWebhooks",
            budget="read",
            answer=page_schema(ENDPOINT_SCHEMA),
            query=PAGINATION_PARAMS,
            **OPTIONS,
        ),
        post=Operation(
            api_create_webhook,
            "Create a webhook endpoint",
            operation_id="createWebhook",
            body=object_schema(ENDPOINT_INPUT, required=["name", "url"], title="WebhookInput"),
            answer=ENDPOINT_WITH_SECRET_SCHEMA,
            status=201,
            is_retryable=True,
            **OPTIONS,
        ),
    ),
    endpoint(
        "webhooks/<int:id>",
        "webhooks-one",
        get=Operation(
            api_read_webhook,
            "Get a webhook endpoint",
            operation_id="getWebhook",
            budget="read",
            answer=ENDPOINT_SCHEMA,
            **OPTIONS,
        ),
        patch=Operation(
            api_edit_webhook,
            "Change a webhook endpoint",
            operation_id="updateWebhook",
            body=object_schema(
                {**ENDPOINT_INPUT, "is_enabled": boolean_schema()}, required=(), title="WebhookPatch"
            ),
            answer=ENDPOINT_SCHEMA,
            is_conditional=True,
            **OPTIONS,
        ),
        delete=Operation(
            api_delete_webhook,
            "Delete a webhook endpoint",
            operation_id="deleteWebhook",
            status=204,
            is_conditional=True,
            **OPTIONS,
        ),
    ),
    endpoint(
        "webhooks/<int:id>:rotateSecret",
        "webhooks-rotate",
        post=Operation(
            api_rotate_webhook_secret,
            "Rotate the secret of a webhook endpoint",
            operation_id="rotateWebhookSecret",
            body=ROTATION_SCHEMA,
            answer=ENDPOINT_WITH_SECRET_SCHEMA,
            is_retryable=True,
            **OPTIONS,
        ),
    ),
    endpoint(
        "webhooks/<int:id>:test",
        "webhooks-test",
        post=Operation(
            api_test_webhook,
            "Send a test event",
            operation_id="createWebhookTest",
            status=204,
            is_retryable=True,
            refusals={409: "endpoint_disabled"},
            **OPTIONS,
        ),
    ),
    endpoint(
        "webhooks/<int:id>/deliveries",
        "webhooks-deliveries",
        get=Operation(
            api_list_webhook_deliveries,
            "List the deliveries of a webhook endpoint, newest first",
            operation_id="listWebhookDeliveries",
            budget="read",
            answer=page_schema(DELIVERY_SCHEMA),
            query=PAGINATION_PARAMS,
            **OPTIONS,
        ),
    ),
    endpoint(
        "webhooks/<int:id>/deliveries/<int:delivery>:redeliver",
        "webhooks-redeliver",
        post=Operation(
            api_redeliver,
            "Deliver an event again",
            operation_id="resendWebhookDelivery",
            status=204,
            is_retryable=True,
            refusals={409: "endpoint_disabled"},
            **OPTIONS,
        ),
    ),
]
