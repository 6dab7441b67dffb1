"""Serving while labels move and builds run: in threads, on committed rows."""

import time
from threading import Thread

import pytest
from django.db import connection, transaction

from personas.models import ApiKey
from prompts.models import AgentPrompt, LedgerEntry
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage
from tests.prompts.serving.test_serving import put_label, version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace)


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
        thread.join(timeout=1.5)
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
