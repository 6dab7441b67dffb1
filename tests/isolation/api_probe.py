"""Sends one API request as a caller and records its effects: response, log, email, cache, writes."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.core import mail

from personas.api import rate_limits
from tests.isolation.api_cast import Caller
from tests.isolation.probe import (
    Answer,
    cache_entries,
    recorded_logs,
    recorded_writes,
    response_texts,
    sent_emails,
    shape_of,
)

# Differs between any two responses.
REQUEST_ID = re.compile(r'"request_id": ?"[^"]*"')


def call(caller: Caller, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> Answer:
    """Send one request with full rate limits: the response headers contain the remaining ones."""
    written_tables: set[str] = set()
    mail.outbox = []
    rate_limits.PROCESS_LIMITER.clear()
    authorization = {"Authorization": f"Bearer {caller.secret}"} if caller.secret else {}
    # A body that is not JSON is given as text.
    content_type = "text/markdown" if isinstance(body, str) else "application/json"
    data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with recorded_writes(written_tables), recorded_logs() as recorder:
        response: Any = caller.client.generic(
            method, path, data, content_type=content_type, headers=authorization | dict(headers)
        )
    return Answer(
        status=response.status_code,
        location=response.headers.get("Location", ""),
        visible_text="\n".join(
            [*response_texts(response), *recorder.lines, *sent_emails(), *cache_entries(written_tables)]
        ),
        shape=REQUEST_ID.sub("", shape_of(response, path)),
        written_tables=written_tables,
        response=response,
    )
