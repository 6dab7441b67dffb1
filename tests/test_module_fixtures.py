"""Module-scoped rows: created before the transaction of the first test, or not at all."""

from typing import Any

import pytest
from django.db import connection

from tests.module_fixtures import rows_of_a_module

pytestmark = pytest.mark.django_db


def test_rows_inside_the_transaction_of_a_test_are_refused(django_db_blocker: Any) -> None:
    with pytest.raises(RuntimeError, match="getfixturevalue"), rows_of_a_module(django_db_blocker):
        pytest.fail("The rows would be rolled back with this test.")


def test_the_rows_of_a_module_are_kept_while_its_next_test_is_held_back() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite ends no idle transactions")
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("0",)
