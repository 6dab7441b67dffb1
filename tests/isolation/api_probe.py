"""Sends one API request as a caller and records its effects: response, log, email, cache, writes."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.core import mail

from personas.api import rate_limits
from tests.isolation.api_cast import Caller
from tests.isolation.probe import Answer, cached, heard, noted_writes, posted_letters, shape_of, spoken

# Differs between any two responses.
REQUEST_ID = re.compile(r'"request_id": ?"[^"]*"')


def call(caller: Caller, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> Answer:
    """Send one request with full rate limits: the response headers contain the remaining ones."""
    wrote: set[str] = set()
    mail.outbox = []
    rate_limits.PROCESS_LIMITER.clear()
    said = {"Authorization": f"Bearer {caller.secret}"} if caller.secret else {}
    data = b"" if body is None else json.dumps(body).encode()
    with noted_writes(wrote), heard() as ear:
        response: Any = caller.client.generic(
            method, path, data, content_type="application/json", headers=said | dict(headers)
        )
    return Answer(
        status=response.status_code,
        location=response.headers.get("Location", ""),
        seen="\n".join([*spoken(response), *ear.lines, *posted_letters(), *cached(wrote)]),
        shape=REQUEST_ID.sub("", shape_of(response, path)),
        wrote=wrote,
        response=response,
    )
