"""Serving while labels move and builds run: in threads, on committed rows."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection, transaction

from core.shared_cache import SingleFlight
from personas.models import ApiKey
from prompts.models import AgentPrompt, LedgerEntry
from prompts.serving.cache import ServingCache
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest
from prompts.serving.services import serve_prompt
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage
from tests.prompts.serving.test_serving import put_label, version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace)


@pytest.mark.slow
def test_while_labels_move_text_and_row_are_of_one_version(stage):
    stage.edit("Be wise.")
    pairs: list[tuple[int, str]] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(25):
                served = fetch(stage.secret, cache=stage.cache)
                pairs.append((served.ledger_id, served.text))
        except Exception as error:  # noqa: BLE001  # asserted below
            errors.append(error)
        finally:
            connection.close()

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in (1, 2) * 6:
        put_label(stage, "production", version(stage, number))
        # The number of retries of a fetch is limited: on a busy machine the moves would exceed it.
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert errors == []
    numbers = dict(LedgerEntry.objects.in_workspace(stage.workspace).values_list("pk", "version__number"))
    assert len(pairs) == 75
    assert all(("Be brave." in text) == (numbers[row] == 1) for row, text in pairs)


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite knows one writer at a time")
def test_a_fetch_waits_for_no_build(stage):
    """A build locks its prompts, and other services lock the workspace, for longer than a bot should wait."""
    stage.fetch()
    served: list[int] = []

    def work() -> None:
        try:
            served.append(stage.fetch().ledger_id)
        finally:
            connection.close()

    with transaction.atomic():
        AgentPrompt.unscoped.select_for_update().get(pk=stage.prompt.pk)
        type(stage.workspace).objects.select_for_update().get(pk=stage.workspace.pk)
        ApiKey.unscoped.select_for_update().get(pk=stage.key.pk)
        thread = Thread(target=work)
        thread.start()
        thread.join(timeout=20)
        assert len(served) == 1
    thread.join()


@pytest.mark.hard
@pytest.mark.planted
def test_foreign_key_constraints_are_found(stage):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite knows one writer at a time")
    name = "ledger_prompt_checked"
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE prompts_ledgerentry ADD CONSTRAINT {name} FOREIGN KEY (prompt_id) "
            "REFERENCES prompts_agentprompt (id)"
        )
    try:
        with pytest.raises(AssertionError):
            test_a_fetch_waits_for_no_build(stage)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE prompts_ledgerentry DROP CONSTRAINT {name}")


# Fewer than the connections of the pool.
CONCURRENT_FETCHES = 6


class LoadCounter:
    """Counts the queries that load keys and versions. Each takes a while, so that fetches overlap."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        for table in ("personas_apikey", "prompts_promptversion"):
            if sql.startswith("SELECT") and f'FROM "{table}"' in sql:
                self.counts[table] += 1
                time.sleep(0.2)
        return execute(sql, params, many, context)


def fetch_concurrently(stage: Stage, cache: ServingCache) -> LoadCounter:
    """Fetch one prompt in several threads of a process that has nothing cached."""
    counter, barrier = LoadCounter(), Barrier(CONCURRENT_FETCHES, timeout=30)

    def work() -> str:
        try:
            connection.ensure_connection()
            with connection.execute_wrapper(counter):
                barrier.wait()
                return fetch(stage.secret, cache=cache).text
        finally:
            connection.close()

    with ThreadPoolExecutor(CONCURRENT_FETCHES) as pool:
        futures = [pool.submit(work) for _ in range(CONCURRENT_FETCHES)]
        assert len({future.result() for future in futures}) == 1
    return counter


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite knows one writer at a time")
def test_concurrent_first_fetches_load_the_prompt_once(stage):
    counter = fetch_concurrently(stage, ServingCache())
    assert counter.counts == {"personas_apikey": 1, "prompts_promptversion": 1}
    assert LedgerEntry.objects.in_workspace(stage.workspace).count() == CONCURRENT_FETCHES


@pytest.mark.planted
@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite knows one writer at a time")
def test_without_coalescing_each_first_fetch_loads_the_prompt(stage):
    class SeparateFlights(SingleFlight[Any, Any]):
        """Loads in every thread."""

        def load(self, key: Any, load: Callable[[], Any]) -> tuple[Any, bool]:
            return load(), False

    cache = ServingCache(resolving=SeparateFlights(), loading=SeparateFlights())
    counts = fetch_concurrently(stage, cache).counts
    assert counts["personas_apikey"] > 1
    assert counts["prompts_promptversion"] > 1


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite knows one writer at a time")
def test_each_of_the_concurrent_fetches_is_charged(stage):
    """A thread that gets the resolution of another one is charged for its own request."""
    charges: list[int | None] = []
    barrier, cache = Barrier(CONCURRENT_FETCHES, timeout=30), ServingCache()

    def work() -> None:
        try:
            connection.ensure_connection()
            with connection.execute_wrapper(LoadCounter()):
                barrier.wait()
                serve_prompt(
                    KeyClient(stage.secret),
                    PromptRequest("pilot", "deck", "production"),
                    CallContext(EMPTY_SLOTS, "request", ()),
                    check_rate_limit=lambda key, _: charges.append(key),
                    cache=cache,
                )
        finally:
            connection.close()

    with ThreadPoolExecutor(CONCURRENT_FETCHES) as pool:
        for future in [pool.submit(work) for _ in range(CONCURRENT_FETCHES)]:
            future.result()
    assert charges == [stage.key.pk] * CONCURRENT_FETCHES
