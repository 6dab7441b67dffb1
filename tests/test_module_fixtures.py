"""Module-scoped rows: created before the transaction of the first test, or not at all."""

from typing import Any

import pytest

from tests.module_fixtures import rows_of_a_module

pytestmark = pytest.mark.django_db


def test_rows_inside_the_transaction_of_a_test_are_refused(django_db_blocker: Any) -> None:
    with pytest.raises(RuntimeError, match="getfixturevalue"), rows_of_a_module(django_db_blocker):
        pytest.fail("The rows would be rolled back with this test.")
