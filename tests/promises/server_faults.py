"""The product's WSGI application without rate limits by default and, on request, with a planted fault."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from random import getrandbits
from threading import Thread
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection
from django.http import StreamingHttpResponse

from project.wsgi import application as product
from tests.promises import (
    FAULT,
    LARGE_STREAM_PATH,
    REAL_RATE_LIMITS,
    SLOW_DOMAIN,
    SLOW_NAME_SECONDS,
    SLOW_STATEMENT_PATH,
    SLOW_STATEMENTS,
    TEST_MAIL_PORT,
)
from tests.promises.worker_faults import one_queue

# Long enough that a kill loses rows that are not written yet.
LATE = 0.05


def row_after_answer() -> None:
    """R4: the response is sent before its ledger row is written."""
    from prompts.serving import ledger_insert
    from prompts.serving import services as serving_services

    later: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    write = ledger_insert.insert_ledger_row

    def write_later() -> None:
        while True:
            arguments = later.get()
            time.sleep(LATE)
            write(*arguments)

    def enqueue(*arguments: Any) -> int:
        later.put(arguments)
        return getrandbits(40)

    vars(serving_services)["insert_ledger_row"] = enqueue
    Thread(target=write_later, daemon=True).start()


def ends_before_answer() -> None:
    """R12: kill the server after a write is committed and before the response is sent."""
    inner = product.application

    def ending(environ: Any, start: Any) -> Any:
        answer = inner(environ, start)
        if environ["REQUEST_METHOD"] == "POST":
            os.killpg(0, signal.SIGKILL)
        return answer

    product.application = ending


def without_breaker() -> None:
    """R6: no circuit breaker; every request tries the broker."""
    from core.task_queue import breaker

    vars(breaker)["record_failure"] = lambda: None


def without_timeouts() -> None:
    """R6: no timeouts; a request to a frozen broker blocks."""
    from project.celery import app

    app.conf["broker_transport_options"] = {"visibility_timeout": 180}
    app.conf["broker_connection_timeout"] = None


def readiness_needs_redis() -> None:
    """R6: /readyz responds with 503 while Redis is away."""
    from project.health import views

    vars(views)["OPTIONAL_PROBES"] = frozenset()


def without_health_checks() -> None:
    """R7: pooled connections are used without a health check."""
    from django.db import connection

    connection.settings_dict["CONN_HEALTH_CHECKS"] = False


def without_translation() -> None:
    """R7: database outages are not translated into 503."""
    from django.db import InterfaceError, OperationalError

    from personas.api import exception_handler

    del exception_handler.PROBLEM_BUILDERS[(OperationalError, InterfaceError)]


def body_before_key() -> None:
    """R15: the API reads the body before it checks the key."""
    from personas.api import views

    check_key = vars(views)["authenticate"]

    def read_first(headers: Any, query: str) -> Any:
        request = sys._getframe(1).f_locals["request"]
        _ = request.body
        return check_key(headers, query)

    vars(views)["authenticate"] = read_first


def without_body_cap() -> None:
    """R15: every thread may read a body."""
    from core.request_body import slots

    vars(slots)["acquire"] = lambda *, is_few: True


def without_watchdog() -> None:
    """R15: no statement is cancelled."""
    from project.request_limits.deadlines import deadlines

    vars(deadlines)["cancel_expired"] = lambda: None


def without_closing() -> None:
    """R15: connections without progress stay open."""
    from project.request_limits.connections import StalledConnections

    setattr(StalledConnections, "close_stalled", lambda _: 0)  # noqa: B010  # mypy forbids an assignment


def resolution_in_request() -> None:
    """R15: the host of a webhook is resolved when the endpoint is saved."""
    from core.outgoing.http_sender import HttpSender, OutgoingPolicy
    from personas.errors import InvalidInput
    from personas.webhooks import api

    create = vars(api)["create_endpoint"]

    def resolve_first(workspace: Any, values: Any, **options: Any) -> Any:
        try:
            HttpSender(OutgoingPolicy.from_settings()).find_target(values["url"])
        except OSError as error:
            raise InvalidInput.on("url", str(error)) from None
        return create(workspace, values, **options)

    vars(api)["create_endpoint"] = resolve_first


def without_email_slots() -> None:
    """R15: every thread may wait for the mail server."""
    from core.outgoing.email_backend import sending_slots

    vars(sending_slots)["acquire"] = lambda *, is_few: True


def use_slow_servers(mail_port: int) -> None:
    """Send emails by SMTP as in production, and let the name server take its time."""
    settings.EMAIL_BACKEND = "core.outgoing.email_backend.LimitedEmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = "127.0.0.1", mail_port, False
    resolve = socket.getaddrinfo

    def resolve_slowly(host: Any, *arguments: Any, **options: Any) -> Any:
        if str(host).endswith(SLOW_DOMAIN):
            time.sleep(SLOW_NAME_SECONDS)
            raise socket.gaierror
        return resolve(host, *arguments, **options)

    vars(socket)["getaddrinfo"] = resolve_slowly


class SlowEndpoints:
    """Two addresses that the product does not have: a statement of a minute, and a stream of 100 MB."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, environ: Any, start: Any) -> Any:
        if environ["PATH_INFO"] == SLOW_STATEMENT_PATH:
            return self.run_slow_statement(start)
        if environ["PATH_INFO"] == LARGE_STREAM_PATH:
            start("200 OK", [("Content-Type", "text/plain")])
            return StreamingHttpResponse(b"x" * 65_536 for _ in range(1_600))
        return self.inner(environ, start)

    def run_slow_statement(self, start: Any) -> Any:
        from personas.api.exception_handler import exception_to_problem

        try:
            with connection.cursor() as cursor:
                cursor.execute(SLOW_STATEMENTS[connection.vendor])
        except OperationalError as error:
            problem = exception_to_problem(error)
            start(f"{problem.status} ", list(problem.headers.items()))
            return [problem.detail.encode()]
        finally:
            connection.close()
        start("200 OK", [])
        return [b""]


def cached_keys() -> None:
    """R11: a key that was valid once is not looked up again."""
    from personas.api import authentication
    from personas.api_keys.selectors import find_valid_key as look_up

    keys: dict[str, Any] = {}

    def find_cached_key(digest: str) -> Any:
        if digest not in keys and (key := look_up(digest)) is not None:
            keys[digest] = key
        return keys.get(digest)

    vars(authentication)["find_valid_key"] = find_cached_key


def unchecked_fetches() -> None:
    """R11: the statement that records a fetch does not check whether the key was revoked."""
    from prompts.serving import ledger_insert

    condition = "AND r.revoked_at IS NULL AND r.expires_at > d.at"
    assert condition in ledger_insert.KEY_JOIN
    vars(ledger_insert)["KEY_JOIN"] = ledger_insert.KEY_JOIN.replace(condition, "")


def cached_sessions() -> None:
    """R11: a session that was loaded once is not loaded again."""
    from project import session_store

    store_class: Any = session_store.SessionStore
    load = store_class.load
    sessions: dict[Any, Any] = {}

    def load_once(store: Any) -> Any:
        if store.session_key not in sessions:
            sessions[store.session_key] = load(store)
        return sessions[store.session_key]

    store_class.load = load_once


def unverified_sessions() -> None:
    """R11: the password hash in a session is not compared with the current one."""
    from django.contrib import auth

    vars(auth)["constant_time_compare"] = lambda one, other: True


def session_scope() -> None:
    """The workspace scope is set for the session, which a pooler shares between clients."""
    from core.db.workspace_scope import SCOPE_SETTING, current_scope
    from project.database.postgresql import base, rls_cursor

    for module in (base, rls_cursor):
        vars(module)["get_scope_statement"] = lambda: f"SET {SCOPE_SETTING} = '{current_scope()}'"


def no_fault() -> None:
    """None: only without rate limits."""


def text_in_spans() -> None:
    """The span of a fetch has the text of the prompt."""
    from prompts.serving import fetch_api
    from prompts.serving.errors import PromptNotFound

    write = fetch_api.serve_with_span

    def serve(serve: Callable[[], Any], *arguments: Any) -> Any:
        try:
            served = serve()
        except PromptNotFound:
            return write(serve, *arguments)
        request = replace(arguments[0], channel=f"{arguments[0].channel} {served.text[:200]}")
        return write(lambda: served, request, *arguments[1:])

    vars(fetch_api)["serve_with_span"] = serve


def share_per_workspace() -> None:
    """R19: quotas and rate limits know workspaces only, and no persons."""
    from personas.api import rate_limits
    from personas.limits import persons, storage_quota

    for module in (persons, storage_quota, rate_limits):
        vars(module)["find_person_id"] = lambda workspace_id: None


FAULTS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        no_fault,
        row_after_answer,
        ends_before_answer,
        without_breaker,
        without_timeouts,
        readiness_needs_redis,
        without_health_checks,
        without_translation,
        body_before_key,
        without_body_cap,
        without_watchdog,
        without_closing,
        resolution_in_request,
        without_email_slots,
        cached_keys,
        unchecked_fetches,
        cached_sessions,
        unverified_sessions,
        one_queue,
        session_scope,
        share_per_workspace,
        text_in_spans,
    )
}

if not os.environ.get(REAL_RATE_LIMITS):
    settings.DRAMATIS_RATE_LIMITS = dict.fromkeys(("fetch", "read", "write", "render"), (10**9, 10**9))
if mail_port := os.environ.get(TEST_MAIL_PORT):
    use_slow_servers(int(mail_port))
limits: Any = product.application
limits.application = SlowEndpoints(limits.application)
if fault := os.environ.get(FAULT):
    FAULTS[fault]()
application = product
