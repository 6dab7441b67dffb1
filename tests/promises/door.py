"""The product's own door, with room in its budgets and, when told so, with one guard taken away behind it."""

import os
import signal
import time
from collections.abc import Callable
from queue import SimpleQueue
from random import getrandbits
from threading import Thread
from typing import Any

from django.conf import settings

from project.wsgi import application as product
from tests.promises import FAULT

# Long enough that a kill finds rows under way.
LATE = 0.05


def row_after_answer() -> None:
    """R4: words leave first, and their row is written when there is time."""
    from prompts.serving import ledger_insert
    from prompts.serving import services as serving_services

    later: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    write = ledger_insert.insert_ledger_row

    def write_later() -> None:
        while True:
            asked = later.get()
            time.sleep(LATE)
            write(*asked)

    def promise(*asked: Any) -> int:
        later.put(asked)
        return getrandbits(40)

    vars(serving_services)["insert_ledger_row"] = promise
    Thread(target=write_later, daemon=True).start()


def ends_before_answer() -> None:
    """R12: no guard, but the worst moment: what was asked for is done, and nobody is told."""
    inner = product.application

    def ending(environ: Any, start: Any) -> Any:
        answer = inner(environ, start)
        if environ["REQUEST_METHOD"] == "POST":
            os.killpg(0, signal.SIGKILL)
        return answer

    product.application = ending


def without_breaker() -> None:
    """R6: every call that wants the broker tries it, however often it has failed."""
    from core.task_queue import breaker

    vars(breaker)["failed"] = lambda: None


def without_timeouts() -> None:
    """R6: whoever asks a frozen broker waits as long as it is frozen."""
    from project.celery import app

    app.conf["broker_transport_options"] = {"visibility_timeout": 180}
    app.conf["broker_connection_timeout"] = None


def without_health_checks() -> None:
    """R7: connections of the pool are believed to live."""
    from django.db import connection

    connection.settings_dict["CONN_HEALTH_CHECKS"] = False


def without_translation() -> None:
    """R7: a database that is away is a fault like any other."""
    from django.db import InterfaceError, OperationalError

    from personas.api import exception_handler

    del exception_handler.PROBLEM_BUILDERS[(OperationalError, InterfaceError)]


FAULTS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        row_after_answer,
        ends_before_answer,
        without_breaker,
        without_timeouts,
        without_health_checks,
        without_translation,
    )
}

settings.DRAMATIS_RATE_LIMITS = dict.fromkeys(("fetch", "read", "write", "render"), (10**9, 10**9))
if fault := os.environ.get(FAULT):
    FAULTS[fault]()
application = product
