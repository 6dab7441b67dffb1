"""Sends one request as a user and records its effects: response, log, email, cache, writes."""

import base64
import hashlib
import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from django.conf import settings
from django.core import mail
from django.db import connection, models
from django.http import HttpResponse
from django.template import Template
from django.test import utils

from personas.models import Workspace
from prompts.models import LedgerEntry
from prompts.serving.ledger_insert import FETCH_FUNCTION
from tests.isolation.canaries import our_models, rows_of, tenant_models
from tests.isolation.cast import Requester

WRITE = re.compile(r'\s*(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+"?(\w+)"?')
# These headers differ between any two responses.
VOLATILE = {"X-Request-ID", "Set-Cookie", "Date", "Expires"}
CONTENT_POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
CSRF = re.compile(r'(csrfmiddlewaretoken" value="|csrf-token" content=")[^"]*')


@dataclass
class Answer:
    """The effects of one request."""

    status: int
    location: str
    visible_text: str
    shape: str
    written_tables: set[str]
    response: Any

    @property
    def wrote_tenant_rows(self) -> bool:
        return bool(self.written_tables & tenant_tables())


class LogRecorder(logging.Handler):
    """Collects log records as text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self.lines.append(f"{record.msg} {record.args} {trace}")


def send_request(requester: Requester, method: str, path: str, data: Any = None) -> Answer:
    """Send one request; the client's cookies are restored afterwards."""
    cookies, written_tables = SimpleCookie(requester.client.cookies), set[str]()
    mail.outbox = []
    with recorded_writes(written_tables), recorded_logs() as recorder:
        # PUT and the like get no body; the product reads form data only from POST.
        body = data if method in {"GET", "HEAD", "POST"} else ""
        response: Any = (
            requester.client.generic(method, path) if body == "" else by_form(requester, method, path, data)
        )
    requester.client.cookies = cookies
    return Answer(
        status=response.status_code,
        location=response.headers.get("Location", ""),
        visible_text="\n".join(
            [*response_texts(response), *recorder.lines, *sent_emails(), *cache_entries(written_tables)]
        ),
        shape=shape_of(response, path),
        written_tables=written_tables,
        response=response,
    )


def by_form(requester: Requester, method: str, path: str, data: Any) -> Any:
    return getattr(requester.client, method.lower())(path, data or {})


@contextmanager
def recorded_writes(written_tables: set[str]) -> Iterator[None]:
    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if match := WRITE.match(sql):
            written_tables.add(match[1])
        elif f" {FETCH_FUNCTION}(" in sql:
            # On Citus a function writes the ledger row.
            written_tables.add(LedgerEntry._meta.db_table)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield


@contextmanager
def recorded_logs() -> Iterator[LogRecorder]:
    # Replaces the other handlers: printing thousands of lines would take longer than the requests.
    recorder, root = LogRecorder(), logging.getLogger()
    others, root.handlers = root.handlers, [recorder]
    try:
        yield recorder
    finally:
        root.handlers = others


def response_texts(response: HttpResponse) -> list[str]:
    """Status line, headers, body, queued messages and session data."""
    request: Any = response.wsgi_request  # type: ignore[attr-defined]  # the test client adds it
    queued = getattr(getattr(request, "_messages", None), "_queued_messages", [])
    session = getattr(getattr(request, "session", None), "_session_cache", {})
    head = f"{response.status_code} {response.reason_phrase}\n{response.serialize_headers().decode()}"
    return [head, text_of(response), str([message.message for message in queued]), str(session)]


def text_of(response: Any) -> str:
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return str(body.decode(errors="replace"))


def sent_emails() -> list[str]:
    return [letter.message().as_string() for letter in mail.outbox]


def cache_entries(written_tables: set[str]) -> list[str]:
    """Keys and values of the cache, if it was written."""
    table = str(settings.CACHES["default"]["LOCATION"])
    if table not in written_tables:
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT cache_key, value FROM {table}")  # noqa: S608  # the name is a setting
        return [f"{key} {base64.b64decode(value).decode(errors='replace')}" for key, value in cursor]


def shape_of(response: Any, path: str) -> str:
    """The response without its volatile parts, for comparison of two rejections."""
    headers = {name: value for name, value in response.headers.items() if name not in VOLATILE}
    body = CSRF.sub("", "" if response.streaming else response.content.decode(errors="replace"))
    text = f"{response.status_code} {headers} {body}"
    return text.replace(path, "…").replace(quote(path), "…")


def tenant_tables() -> set[str]:
    return {model._meta.db_table for model in tenant_models()} | {Workspace._meta.db_table}


def digest(workspace: Workspace, tables: Collection[str] = ()) -> dict[str, str]:
    """Digests of the rows of a workspace by table: of the given tables, or of all."""
    names = {model._meta.db_table: model for model in our_models()}
    chosen = {name: model for name, model in names.items() if not tables or name in tables}
    return {name: fingerprint(model, workspace) for name, model in chosen.items()}


def fingerprint(model: type[models.Model], workspace: Workspace) -> str:
    rows: Any = rows_of(model, workspace)
    return hashlib.sha256(repr(list(rows.values_list())).encode()).hexdigest()


@contextmanager
def quick_templates() -> Iterator[None]:
    """Use the normal template rendering.

    The test runner's version copies every context, which is not needed here.
    """
    plain: Any = utils._TestState.saved_data.template_render  # type: ignore[attr-defined]  # Django's own note
    with patch.object(Template, "_render", plain):
        yield
