"""The ids of the test database: no number belongs to rows of two tables."""

import pytest
from django.db import connection

from personas.models import Membership
from tests.database_ids import FIRST_ID, IDS_PER_TABLE
from tests.factories import make_memory, make_soul


def test_each_table_has_a_range_of_ids(workspace, alice):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite reuses the ids of rows that were rolled back")
    [member] = Membership.objects.in_workspace(workspace).filter(user=alice)
    rows = (alice, workspace, member, make_soul(workspace), make_memory(workspace))
    assert all(len(str(row.pk)) == len(str(FIRST_ID)) for row in rows)
    assert len({(row.pk - FIRST_ID) // IDS_PER_TABLE for row in rows}) == len(rows)
