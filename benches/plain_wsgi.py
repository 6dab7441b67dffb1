"""Baseline without Django: a WSGI function that returns the response bytes of a fetch from memory."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

BODY = Path(os.environ["BENCH_BODY"]).read_bytes()
HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))]


def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    start("200 OK", HEADERS)
    return (BODY,)
