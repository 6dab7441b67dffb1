"""Deliver events to endpoints: a loop that leases endpoints, sends in threads and stores the results.

All state is in the database. If a worker is killed, its leases end after LEASE, and what it has not stored is
sent again with the same id. The threads send requests only; the thread of the job does all queries.

Receivers choose what they answer, so no error may have an effect beyond its endpoint, and none may lead to a
request without a pause: any exception in an attempt is a failed attempt with the usual delay.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from core.outgoing.http_sender import HttpSender, OutgoingError, OutgoingPolicy
from personas.accounts.encryption import UnreadableSecret, decrypt_secret
from personas.actors import SYSTEM_ACTOR
from personas.events.selectors import event_json
from personas.limits.persons import get_share_key
from personas.models import DeliveryStatus, EndpointStatus, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from personas.tenancy.lost_nodes import list_from_workspaces
from personas.webhooks.fan_out import fan_out_events, list_due_endpoints, list_workspaces_to_fan_out
from personas.webhooks.retries import get_hold, get_retry_time, parse_retry_after
from personas.webhooks.services import list_valid_secrets, lock_endpoint, set_endpoint_status
from personas.webhooks.signatures import build_signature_headers, load_private_key

log = structlog.get_logger(__name__)

# Each endpoint that is being served takes one thread. The endpoints in all workspaces of one person together
# get at most MAX_PER_PERSON threads.
MAX_THREADS, MAX_PER_PERSON = 16, 4
# After this many deliveries or seconds, it is the turn of the next endpoint.
TURN_DELIVERIES, TURN_SECONDS = 100, 5.0
# A worker renews the leases of its endpoints, so a killed worker delays them by at most this long.
LEASE = timedelta(seconds=15)
RENEW_SECONDS = LEASE.total_seconds() / 3
# How long a job accepts work, in seconds: well under the time limit of jobs. The job ends with its last turn,
# and a receiver that hangs takes 15 seconds. Endpoints that have failed are therefore accepted for a shorter
# time, so that the others do not wait for them.
ACCEPT_SECONDS, ACCEPT_FAILING_SECONDS = 35.0, 20.0
POLL_SECONDS = 0.2
MAX_RESPONSE_LENGTH = 2_000
# An endpoint without a success for this long is disabled when a delivery fails for the last time.
FAILING_TIME = timedelta(days=3)
GONE_STATUS = 410
INTERNAL_ERROR = "The delivery failed because of an error in Dramatis, which is in its log."


@dataclass(frozen=True)
class AttemptResult:
    """What came of one request."""

    delivery: WebhookDelivery
    at: datetime
    milliseconds: int
    status: int | None = None
    error: str = ""
    response: str = ""
    retry_after: timedelta = timedelta(0)

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True)
class SigningKeys:
    """The keys of an endpoint in clear."""

    secret_texts: Sequence[str]
    private_key: Ed25519PrivateKey


@dataclass
class EndpointTurn:
    """The deliveries that a thread sends to one endpoint, one after the other, with the results so far."""

    endpoint: WebhookEndpoint
    deliveries: Sequence[WebhookDelivery]
    results: list[AttemptResult] = field(default_factory=list)

    @cached_property
    def keys(self) -> SigningKeys | None:
        return load_signing_keys(self.endpoint)

    def run(self, send: "Callable[[EndpointTurn, WebhookDelivery], AttemptResult]") -> None:
        """Send until the turn is over. A failure ends it: the endpoint is left alone for a while."""
        ends_at = time.monotonic() + TURN_SECONDS
        for delivery in self.deliveries:
            result = self.attempt(send, delivery)
            self.results.append(result)
            if not result.is_success or time.monotonic() > ends_at:
                return

    def attempt(
        self, send: "Callable[[EndpointTurn, WebhookDelivery], AttemptResult]", delivery: WebhookDelivery
    ) -> AttemptResult:
        """Send one delivery. Any exception is a failed attempt."""
        at, began = timezone.now(), time.monotonic()
        try:
            return send(self, delivery)
        except Exception:
            log.exception("webhook_attempt_failed", endpoint=self.endpoint.pk, delivery=delivery.pk)
            return AttemptResult(delivery, at, round((time.monotonic() - began) * 1000), error=INTERNAL_ERROR)


@dataclass
class DeliveryLoop:
    """Serves due endpoints until none is left."""

    sender: HttpSender = field(default_factory=lambda: HttpSender(OutgoingPolicy.from_settings()))
    accept_seconds: float = ACCEPT_SECONDS
    accept_failing_seconds: float = ACCEPT_FAILING_SECONDS
    turns: "dict[Future[None], EndpointTurn]" = field(default_factory=dict)
    renewed_at: float = field(default_factory=time.monotonic)

    # Workspaces whose events could not be fanned out; the next job tries again.
    failed_workspaces: set[int] = field(default_factory=set)

    def run(self) -> None:
        with ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="webhook") as threads:
            try:
                self.serve_endpoints(threads)
            finally:
                # After an error there may be requests under way: their attempts are recorded too.
                wait(self.turns)
                self.store_results()

    def serve_endpoints(self, threads: ThreadPoolExecutor) -> None:
        started_at = time.monotonic()
        while True:
            seconds = time.monotonic() - started_at
            is_fanning_out = False
            if seconds < self.accept_seconds:
                is_fanning_out = fan_out_all(self.failed_workspaces)
                self.start_turns(threads, with_failing=seconds < self.accept_failing_seconds)
            if not self.turns:
                if is_fanning_out:
                    continue
                return
            wait(self.turns, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            self.store_results()
            self.renew_leases()

    def renew_leases(self) -> None:
        if time.monotonic() - self.renewed_at < RENEW_SECONDS:
            return
        self.renewed_at = time.monotonic()
        for turn in self.turns.values():
            with workspace_scope(turn.endpoint.workspace_id):
                rows = WebhookEndpoint.objects.in_workspace(turn.endpoint.workspace_id)
                rows.filter(pk=turn.endpoint.pk).update(leased_until=timezone.now() + LEASE)

    def start_turns(self, threads: ThreadPoolExecutor, *, with_failing: bool) -> None:
        """Lease due endpoints, and start a thread for each."""
        counts = Counter(get_share_key(turn.endpoint.workspace_id) for turn in self.turns.values())
        for endpoint in list_from_workspaces(partial(list_due_endpoints, timezone.now())):
            if len(self.turns) >= MAX_THREADS:
                return
            share = get_share_key(endpoint.workspace_id)
            if counts[share] >= MAX_PER_PERSON or (endpoint.failures and not with_failing):
                continue
            try:
                with workspace_scope(endpoint.workspace_id):
                    deliveries = lease_endpoint(endpoint)
                if deliveries:
                    turn = EndpointTurn(endpoint, deliveries)
                    self.turns[threads.submit(turn.run, self.send)] = turn
                    counts[share] += 1
            except Exception:
                # If the endpoint was leased, it is not tried again before the lease ends.
                log.exception("webhook_turn_not_started", endpoint=endpoint.pk)

    def store_results(self) -> None:
        """Store the results of all turns, and end the finished ones."""
        for future, turn in list(self.turns.items()):
            is_done = future.done()
            results = list(turn.results)
            del turn.results[: len(results)]
            if is_done:
                del self.turns[future]
            if results or is_done:
                with workspace_scope(turn.endpoint.workspace_id):
                    store_or_record_failure(turn.endpoint, results, is_done=is_done)

    def send(self, turn: EndpointTurn, delivery: WebhookDelivery) -> AttemptResult:
        """Send one event. This runs in a thread, and queries nothing."""
        at, began, endpoint = timezone.now(), time.monotonic(), turn.endpoint
        body = json.dumps(event_json(delivery.event, endpoint.workspace), separators=(",", ":")).encode()

        def build_result(**values: object) -> AttemptResult:
            return AttemptResult(delivery, at, round((time.monotonic() - began) * 1000), **values)  # type: ignore[arg-type]

        if turn.keys is None:
            return build_result(error="The secret cannot be decrypted. Create the endpoint again.")
        headers = build_signature_headers(
            delivery.event.public_id,
            int(at.timestamp()),
            body,
            secret_texts=turn.keys.secret_texts,
            private_key=turn.keys.private_key,
        )
        try:
            headers |= {"content-type": "application/json", "user-agent": "Dramatis-Webhooks/1.0"}
            response = self.sender.post(endpoint.url, body, headers)
        except OutgoingError as error:
            return build_result(error=str(error)[:200])
        return build_result(
            status=response.status,
            response=response.body[:MAX_RESPONSE_LENGTH].decode("utf-8", "replace").replace("\x00", ""),
            retry_after=parse_retry_after(response.headers.get("retry-after", ""), at),
        )


def load_signing_keys(endpoint: WebhookEndpoint) -> SigningKeys | None:
    """Decrypt the keys of an endpoint once for its turn. Return None if no configured key decrypts them."""
    try:
        private_key = load_private_key(decrypt_secret(endpoint.private_key))
        return SigningKeys(list_valid_secrets(endpoint), private_key)
    except UnreadableSecret:
        log.error("webhook_secret_unreadable", endpoint=endpoint.pk)  # noqa: TRY400  # the traceback says no more
        return None


def fan_out_all(failed: set[int] | None = None) -> bool:
    """Create deliveries of one batch of events per person, for workspaces that are not in `failed`.

    The loop calls this again and again, so the workspaces of a person, chosen at random, have their turns.
    Workspaces that fail now are added to `failed`. Return whether there were events.
    """
    failed = set() if failed is None else failed
    waiting = list(set(list_workspaces_to_fan_out()) - failed)
    random.shuffle(waiting)
    count = 0
    for workspace_id in {get_share_key(pk): pk for pk in waiting}.values():
        try:
            with workspace_scope(workspace_id):
                count += fan_out_events(workspace_id)
        except Exception:
            failed.add(workspace_id)
            log.exception("webhook_fan_out_failed", workspace=workspace_id)
    return bool(count)


def lease_endpoint(endpoint: WebhookEndpoint) -> list[WebhookDelivery]:
    """Lease an endpoint, and return its due deliveries; none if another worker was faster."""
    now = timezone.now()
    rows = WebhookEndpoint.objects.in_workspace(endpoint.workspace_id).filter(
        pk=endpoint.pk, leased_until=endpoint.leased_until, status=EndpointStatus.ENABLED
    )
    if not rows.update(leased_until=now + LEASE, served_at=now):
        return []
    endpoint.refresh_from_db()
    # Load the workspace now, because the threads run no queries.
    endpoint.workspace  # noqa: B018
    due = WebhookDelivery.objects.in_workspace(endpoint.workspace_id).filter(
        endpoint=endpoint, status=DeliveryStatus.PENDING, due_at__lte=now
    )
    return list(due.select_related("event").order_by("due_at", "pk")[:TURN_DELIVERIES])


def store_or_record_failure(
    endpoint: WebhookEndpoint, results: Sequence[AttemptResult], *, is_done: bool
) -> None:
    """Store the results of a turn; if this fails, store them as failed attempts without what was received.

    If the database takes neither, the endpoint is served again when its lease has ended.
    """
    try:
        store_turn_results(endpoint, results, is_done=is_done)
    except Exception:
        log.exception("webhook_results_not_stored", endpoint=endpoint.pk)
        try:
            store_failures(endpoint, results)
        except Exception:
            log.exception("webhook_failures_not_stored", endpoint=endpoint.pk)


@transaction.atomic
def store_failures(endpoint: WebhookEndpoint, results: Sequence[AttemptResult]) -> None:
    """Record a failed attempt for each delivery that still exists, and hold the endpoint."""
    rows = WebhookDelivery.objects.in_workspace(endpoint.workspace_id)
    deliveries = {row.pk: row for row in rows.filter(pk__in=[result.delivery.pk for result in results])}
    failures = [
        AttemptResult(deliveries[result.delivery.pk], result.at, result.milliseconds, error=INTERNAL_ERROR)
        for result in results
        if result.delivery.pk in deliveries
    ]
    locked = lock_endpoint(endpoint)
    store_attempts(locked, failures)
    update_health(locked, failures)
    locked.save(update_fields=["failures", "failing_since", "held_until"])


@transaction.atomic
def store_turn_results(endpoint: WebhookEndpoint, results: Sequence[AttemptResult], *, is_done: bool) -> None:
    """Store the attempts and their effects, and renew the lease or end it."""
    rows = WebhookEndpoint.objects.in_workspace(endpoint.workspace_id)
    locked = rows.select_for_update(of=("self",), no_key=True).filter(pk=endpoint.pk).first()
    if locked is None:
        return
    store_attempts(locked, results)
    update_health(locked, results)
    now = timezone.now()
    locked.leased_until = None if is_done else now + LEASE
    locked.save(update_fields=["leased_until", "failures", "failing_since", "held_until"])
    is_gone = any(result.status == GONE_STATUS for result in results)
    is_given_up = any(result.delivery.status == DeliveryStatus.FAILED for result in results)
    is_failing = locked.failing_since is not None and now - locked.failing_since > FAILING_TIME
    if is_gone or (is_given_up and is_failing):
        status = EndpointStatus.GONE if is_gone else EndpointStatus.FAILING
        set_endpoint_status(locked, status, by=SYSTEM_ACTOR)
        log.warning(
            "webhook_endpoint_disabled", workspace=locked.workspace_id, endpoint=locked.pk, status=status
        )


def store_attempts(endpoint: WebhookEndpoint, results: Sequence[AttemptResult]) -> None:
    WebhookAttempt.objects.in_workspace(endpoint.workspace_id).bulk_create(
        [
            WebhookAttempt(
                workspace_id=endpoint.workspace_id,
                delivery=result.delivery,
                at=result.at,
                milliseconds=result.milliseconds,
                status=result.status,
                error=result.error,
                response=result.response,
            )
            for result in results
        ]
    )
    now = timezone.now()
    rows = WebhookDelivery.objects.in_workspace(endpoint.workspace_id)
    delivered = [result.delivery.pk for result in results if result.is_success]
    if delivered:
        rows.filter(pk__in=delivered).update(
            status=DeliveryStatus.DELIVERED, finished_at=now, attempt_count=F("attempt_count") + 1
        )
    for result in results:
        if result.is_success:
            continue
        delivery = result.delivery
        delivery.attempt_count += 1
        if retry_at := get_retry_time(delivery.attempt_count, result.retry_after, now):
            delivery.due_at = retry_at
        else:
            delivery.status, delivery.finished_at = DeliveryStatus.FAILED, now
        delivery.save(update_fields=["status", "attempt_count", "due_at", "finished_at"])


def update_health(endpoint: WebhookEndpoint, results: Sequence[AttemptResult]) -> None:
    """Count the failures in a row, and leave the endpoint alone for a while after one."""
    for result in results:
        if result.is_success:
            endpoint.failures, endpoint.failing_since, endpoint.held_until = 0, None, None
        else:
            now = timezone.now()
            endpoint.failures += 1
            endpoint.failing_since = endpoint.failing_since or now
            endpoint.held_until = now + get_hold(endpoint.failures, result.status, result.retry_after)
