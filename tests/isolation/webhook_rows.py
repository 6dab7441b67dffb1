"""Table rows of webhook endpoints: operations of the API, and pages."""

from typing import Any

from tests.isolation.api_rows import Row, constant, row
from tests.isolation.cast import Stage
from tests.isolation.rows import KEYS, Page, action

ENDPOINT = {"id": row("webhooks")}
DELIVERY = {**ENDPOINT, "delivery": row("webhook-deliveries")}
# The address of this machine, which the settings of the tests allow.
NEW_ENDPOINT = {"name": "Fresh", "url": "http://127.0.0.1/hook"}

WEBHOOK_OPERATIONS: dict[str, Row] = {
    "GET webhooks-list": Row(narrow=403),
    "POST webhooks-list": Row(body=constant(NEW_ENDPOINT), narrow=403),
    "GET webhooks-one": Row(ENDPOINT, narrow=403),
    "PATCH webhooks-one": Row(ENDPOINT, body=constant({"name": "Renamed"}), narrow=403),
    "DELETE webhooks-one": Row(ENDPOINT, narrow=403),
    "POST webhooks-rotate": Row(ENDPOINT, body=constant({"overlap_hours": 1}), narrow=403),
    "POST webhooks-test": Row(ENDPOINT, narrow=403),
    "GET webhooks-deliveries": Row(ENDPOINT, narrow=403),
    "POST webhooks-redeliver": Row(DELIVERY, narrow=403),
}


def new_endpoint(stage: Stage, home: str) -> dict[str, Any]:
    return dict(NEW_ENDPOINT)


OBJECTS = {"key": ("webhooks", "pk")}
WEBHOOK_PAGES: dict[str, Page] = {
    "webhooks:list": Page(read=KEYS),
    # The response contains the secret, so there is no redirect.
    "webhooks:new": Page(read=KEYS, write=KEYS, body=new_endpoint, status=200),
    "webhooks:detail": Page(read=KEYS, objects=OBJECTS),
    "webhooks:edit": Page(read=KEYS, write=KEYS, body=new_endpoint, objects=OBJECTS),
    "webhooks:rotate": action(KEYS, status=200, objects=OBJECTS),
    "webhooks:test": action(KEYS, objects=OBJECTS),
    "webhooks:toggle": action(KEYS, objects=OBJECTS),
    "webhooks:delete": action(KEYS, objects=OBJECTS),
    "webhooks:redeliver": action(KEYS, objects={**OBJECTS, "delivery": ("webhook-deliveries", "pk")}),
}
