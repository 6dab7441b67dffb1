"""A ledger table that rejects every INSERT: no prompt is served without its row."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from django.db import connection

from tests.clients.live import LiveServer
from tests.prompts.evidence.ledger.test_ledger import TRIES, count_prompt_bytes, refused_and_leaked
from tests.prompts.serving.fetch_stage import ADDRESS
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stage(workspace):
    return make_stage(workspace)


REFUSING = {
    "postgresql": (
        """CREATE FUNCTION ledger_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN RAISE EXCEPTION 'the ledger is full'; END $$""",
        """CREATE TRIGGER ledger_is_full BEFORE INSERT ON prompts_ledgerentry
           FOR EACH ROW EXECUTE FUNCTION ledger_is_full()""",
    ),
    "sqlite": (
        """CREATE TRIGGER ledger_is_full BEFORE INSERT ON prompts_ledgerentry
           BEGIN SELECT RAISE(ABORT, 'the ledger is full'); END""",
    ),
}
ALLOWING = {
    "postgresql": ("DROP TRIGGER ledger_is_full ON prompts_ledgerentry", "DROP FUNCTION ledger_is_full()"),
    "sqlite": ("DROP TRIGGER ledger_is_full",),
}


def execute(statements) -> None:
    with connection.cursor() as cursor:
        for statement in statements[connection.vendor]:
            cursor.execute(statement)


@contextmanager
def full_ledger() -> Iterator[None]:
    execute(REFUSING)
    try:
        yield
    finally:
        execute(ALLOWING)


@pytest.mark.slow
@pytest.mark.promise("R5")
def test_when_the_database_rejects_the_row_no_byte_is_served(stage):
    stage.fetch()
    with full_ledger():
        assert refused_and_leaked(stage, TRIES) == (TRIES, 0)
    assert len(stage.rows) == 1


HARD_TRIES = 200


@pytest.mark.hard
@pytest.mark.promise("R5")
def test_a_server_with_a_full_ledger_refuses_every_fetch(stage, tmp_path, record_property):
    server = LiveServer(tmp_path / "web.log")
    server.start()
    try:
        headers = {"Authorization": f"Bearer {stage.secret}"}
        with httpx.Client(base_url=server.url, headers=headers) as client:
            assert b"Be brave." in client.get(ADDRESS).content
            with full_ledger():
                responses = [client.get(ADDRESS) for _ in range(HARD_TRIES)]
            assert client.get(ADDRESS).status_code == 200
    finally:
        server.kill()
    refused = sum((one.status_code, one.headers.get("Retry-After")) == (503, "2") for one in responses)
    leaked = sum(count_prompt_bytes(one.status_code, one.content) for one in responses)
    record_property(
        "measured",
        f"a server with a full ledger: {refused} of {HARD_TRIES} fetches got 503, {leaked} bytes of a prompt",
    )
    assert (refused, leaked) == (HARD_TRIES, 0)
    assert len(stage.rows) == 2
