"""A ledger table that rejects every INSERT: no prompt is served without its row."""

import pytest
from django.db import connection

from tests.prompts.ledger.test_ledger import TRIES, refused_and_leaked
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


@pytest.mark.promise("R5")
@pytest.mark.parametrize("tries", TRIES)
def test_when_the_database_rejects_the_row_no_byte_is_served(stage, tries, record_property):
    stage.fetch()
    execute(REFUSING)
    try:
        refused, leaked = refused_and_leaked(stage, tries)
    finally:
        execute(ALLOWING)
    record_property("measured", f"{refused} of {tries} refused, {leaked} bytes left")
    assert (refused, leaked) == (tries, 0)
    assert len(stage.rows) == 1
