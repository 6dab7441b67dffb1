"""Idempotency keys: a retried request is not executed again but gets the stored response of the first."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import ApiResponse
from personas.models import IdempotentResponse, Workspace

IDEMPOTENCY_HEADER = "Idempotency-Key"
IDEMPOTENCY_KEY_PATTERN = re.compile(r"[\x21-\x7e]{1,255}")
IDEMPOTENCY_RETENTION = timedelta(hours=24)


def run_idempotent(
    workspace: Workspace, route: str, name: str, content: Any, run: Callable[[], ApiResponse]
) -> ApiResponse:
    """Run the operation, or return the stored response of an earlier request with the same idempotency key.

    `content` is what must be the same in a retry: the parsed body and the query parameters.

    The response is stored in the same transaction as the operation's changes. Failed requests are not stored,
    because they change nothing and can be executed again.
    """
    if not IDEMPOTENCY_KEY_PATTERN.fullmatch(name):
        error = FieldError("Send up to 255 printable characters without spaces.", header=IDEMPOTENCY_HEADER)
        raise ProblemError(Problem(400, "bad_request", f"{IDEMPOTENCY_HEADER}: {error.detail}", [error]))
    digest = compute_content_digest(content)
    with transaction.atomic():
        lock_idempotency_key(workspace, route, name)
        stored = find_stored_response(workspace, route, name)
        if stored is not None:
            return replay_response(stored, digest)
        response = run()
        if response.status < 500:
            store_response(workspace, route, name, digest, response)
        return response


def compute_content_digest(content: Any) -> str:
    """Return a digest that does not depend on the order of the keys, whitespace or escapes of the JSON."""
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def lock_idempotency_key(workspace: Workspace, route: str, name: str) -> None:
    """Take a PostgreSQL advisory lock on the idempotency key, or raise 409 if another request holds the lock.

    SQLite needs no lock. It runs one writer at a time, so a concurrent request with the same key waits and
    then finds the stored response.
    """
    if connection.vendor != "postgresql":
        return
    lock_name = f"{workspace.pk}/{route}/{name}".encode()
    lock_id = int.from_bytes(sha256(lock_name).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock_id])
        row = cursor.fetchone()
    if not row or not row[0]:
        detail = "The first request with this Idempotency-Key is still in progress."
        raise ProblemError(Problem(409, "in_progress", detail, headers={"Retry-After": "1"}))


def find_stored_response(workspace: Workspace, route: str, name: str) -> IdempotentResponse | None:
    rows = IdempotentResponse.objects.in_workspace(workspace).filter(route=route, name=name)
    stored = rows.first()
    if stored is not None and stored.at < timezone.now() - IDEMPOTENCY_RETENTION:
        stored.delete()
        return None
    return stored


def replay_response(stored: IdempotentResponse, digest: str) -> ApiResponse:
    if stored.is_erased:
        detail = (
            "The first request with this Idempotency-Key succeeded. Its response contained text that "
            "has been erased."
        )
        raise ProblemError(Problem(410, "erased", detail))
    if stored.body_digest != digest:
        error = FieldError(
            "This Idempotency-Key was used with a different body. Use a new key.", header=IDEMPOTENCY_HEADER
        )
        raise ProblemError(Problem(422, "idempotency_key_reused", error.detail, [error]))
    headers = {**stored.headers, "Idempotency-Replayed": "true"}
    return ApiResponse(stored.status, bytes(stored.body), headers)


def store_response(workspace: Workspace, route: str, name: str, digest: str, response: ApiResponse) -> None:
    IdempotentResponse(
        workspace=workspace,
        route=route,
        name=name,
        body_digest=digest,
        status=response.status,
        headers=dict(response.headers),
        body=response.body_to_store,
        at=timezone.now(),
    ).save(force_insert=True)


def delete_expired_responses(max_age: timedelta = IDEMPOTENCY_RETENTION) -> int:
    """Delete stored responses that are older than `max_age`. Called by the scheduler."""
    return delete_in_batches(IdempotentResponse.unscoped.filter(at__lt=timezone.now() - max_age))
